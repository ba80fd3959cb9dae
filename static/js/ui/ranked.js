/** Ranked lists of buttons with bars. One Tab stop a list: arrow keys move inside it. */
import { el, word } from './dom.js';

/**
 * @param {{name: string, share: number, number: string, data: Record<string, string | number | null>, pressed?: boolean,
 *   change?: boolean}} row share: length of the bar, 0 to 1
 * @returns {HTMLLIElement}
 */
export function rankedRow({ name, share, number, data, pressed = false, change = false }) {
  const bar = el('span', { class: change ? 'bar change' : 'bar' });
  bar.style.width = `${100 * share}%`;
  return el('li', {}, el('button', { type: 'button', ...data, 'aria-pressed': String(pressed), tabindex: -1 },
    word(name, 'name'), el('span', { class: 'track' }, bar), el('span', { class: 'number' }, number)));
}

/** @param {HTMLElement} list its pressed button, else its first, becomes the one Tab stop */
export function settleStop(list) {
  const buttons = [...list.querySelectorAll('button')];
  const stop = buttons.find((button) => button.getAttribute('aria-pressed') === 'true') ?? buttons[0];
  for (const button of buttons) button.tabIndex = button === stop ? 0 : -1;
}

/** @param {HTMLElement} root holds lists of class `ranked`, now or later */
export function wireRanked(root) {
  root.addEventListener('keydown', (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const button = /** @type {Element} */ (event.target).closest('.ranked button');
    const list = /** @type {HTMLElement | null} */ (button?.closest('.ranked') ?? null);
    if (!step || !button || !list) return;
    event.preventDefault();
    const buttons = [...list.querySelectorAll('button')];
    const next = buttons[buttons.indexOf(/** @type {HTMLButtonElement} */ (button)) + step];
    if (!next) return;
    for (const other of buttons) other.tabIndex = other === next ? 0 : -1;
    next.focus();
  });
}
