/** The text box: grows with its text; Enter runs, Shift and Enter breaks the line. */
import { find } from './dom.js';

/**
 * @param {() => void} onRun
 * @returns {{value: () => string, set: (text: string) => void, focus: () => void}}
 */
export function wireTextBox(onRun) {
  const box = /** @type {HTMLTextAreaElement} */ (find(document, '[data-testid="text"]'));
  const grow = () => {
    box.style.height = 'auto';
    box.style.height = `${Math.min(box.scrollHeight + 2, window.innerHeight * 0.2)}px`;
  };
  box.addEventListener('input', grow);
  window.addEventListener('resize', grow);
  box.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    onRun();
  });
  return {
    value: () => box.value,
    set: (text) => {
      if (box.value !== text) box.value = text;
      grow();
    },
    focus: () => box.focus(),
  };
}
