/** The text box: grows with its text; Enter runs, Shift and Enter breaks the line. */
/**
 * @param {HTMLTextAreaElement} box
 * @param {() => void} onRun
 * @returns {{element: HTMLTextAreaElement, value: () => string, set: (text: string) => void}}
 */
export function wireTextBox(box, onRun) {
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
    element: box,
    value: () => box.value,
    set: (text) => {
      if (box.value !== text) box.value = text;
      grow();
    },
  };
}
