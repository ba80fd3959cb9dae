/** The tokens of a lab's text as buttons that choose one of them. */
import { el, word } from '../ui/dom.js';

/** @param {HTMLElement} root @param {import('./lab.js').Lab} lab */
export default function tokenRow(root, lab) {
  root.classList.add('token-row');
  root.setAttribute('role', 'group');
  root.setAttribute('aria-label', 'Tokens of the text');
  lab.onResult(({ facts }) => {
    const held = root.contains(document.activeElement);
    const buttons = /** @type {string[]} */ (facts.tokens).map((text, i) => {
      const made = el('button', { type: 'button', 'aria-pressed': String(i === facts.at) }, word(text));
      made.addEventListener('click', () => { void lab.set({ token: i }); });
      return made;
    });
    root.replaceChildren(...buttons);
    if (held) buttons[facts.at].focus();
  });
}
