/** What a picture can be saved as. */
import { el } from './dom.js';

/** @typedef {{label: string, run?: () => void, href?: string}} Item */

/**
 * @param {string} name for the test id
 * @param {() => Item[]} items asked when the menu opens
 * @returns {HTMLElement}
 */
export function exportMenu(name, items) {
  const list = el('ul', { class: 'menu' });
  const menu = el('details', { class: 'export', 'data-testid': `export-${name}` }, el('summary', {}, 'export'), list);
  menu.addEventListener('toggle', () => {
    if (menu.open) list.replaceChildren(...items().map((item) => el('li', {}, entry(item))));
  });
  menu.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    menu.open = false;
    menu.querySelector('summary')?.focus();
  });
  menu.addEventListener('focusout', (event) => {
    if (event.relatedTarget && !menu.contains(/** @type {Node} */ (event.relatedTarget))) menu.open = false;
  });
  document.addEventListener('click', (event) => {
    if (!menu.contains(/** @type {Node} */ (event.target))) menu.open = false;
  });
  list.addEventListener('click', () => { menu.open = false; });
  return menu;
}

/** @param {Item} item */
function entry({ label, run, href }) {
  if (href) return el('a', { href, download: '' }, label);
  const button = el('button', { type: 'button' }, label);
  if (run) button.addEventListener('click', run);
  return button;
}
