/** The text as tokens, shaded by where one of them looks. */
import { TRANSFER } from '../colour.js';
import { direction, joints, visible } from '../spans.js';
import { el } from './dom.js';
import { weightText } from './format.js';

/** @typedef {import('../types.js').Token} Token */

export class TokenStrip {
  /**
   * @param {HTMLElement} root
   * @param {{label: string, onQuery: (index: number) => void, onKey: (index: number) => void,
   *   onPoint: (index: number | null) => void, onTurn?: (next: 'query' | 'key') => void}} on
   */
  constructor(root, on) {
    this.root = root;
    this.on = on;
    this.next = /** @type {'query' | 'key'} */ ('query');
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    this.touched = false;
    root.setAttribute('role', 'group');
    root.setAttribute('aria-label', on.label);
    root.addEventListener('pointerdown', (event) => { this.touched = event.pointerType === 'touch'; });
    root.addEventListener('click', (event) => this.#click(event));
    root.addEventListener('pointerover', (event) => {
      if (event.pointerType === 'mouse') on.onPoint(this.#index(event));
    });
    root.addEventListener('pointerleave', () => on.onPoint(null));
    root.addEventListener('keydown', (event) => this.#key(event));
  }

  /** @param {Token[]} tokens @param {string} text */
  render(tokens, text) {
    const joined = joints(text, tokens);
    this.next = 'query';
    this.root.dir = direction(text);
    this.buttons = tokens.map((token, index) => el('button', {
      type: 'button', class: `word ${joined[index]}${token.special ? ' special' : ''}`, 'data-index': index,
      tabindex: index === 0 ? 0 : -1,
    }, visible(token.text)));
    const before = (/** @type {string} */ joint) => (joint === 'break' ? [el('br')] : joint === 'space' ? [' '] : []);
    const parts = this.buttons.flatMap((button, index) => [...before(joined[index]), button]);
    this.root.replaceChildren(...parts);
  }

  /** @param {Event} event @returns {number | null} */
  #index(event) {
    const button = /** @type {Element} */ (event.target).closest('button');
    return button ? Number(button.dataset.index) : null;
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const index = this.#index(event);
    if (index === null) return;
    const key = event.shiftKey || (this.touched && this.next === 'key');
    if (this.touched) {
      this.next = key ? 'query' : 'key';
      this.on.onTurn?.(this.next);
    }
    if (key) this.on.onKey(index);
    else this.on.onQuery(index);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const index = this.#index(event);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (index === null || !step) return;
    event.preventDefault();
    const turn = this.root.dir === 'rtl' ? -1 : 1;
    const next = this.buttons[index + step * turn];
    if (!next) return;
    this.buttons[index].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  /** Scrolls a token into the strip's own box, never the page. @param {number} index */
  reveal(index) {
    const button = this.buttons[index];
    if (!button || this.root.scrollHeight <= this.root.clientHeight) return;
    const top = button.offsetTop;
    const hidden = top < this.root.scrollTop || top + button.offsetHeight > this.root.scrollTop + this.root.clientHeight;
    if (hidden) this.root.scrollTop = top - this.root.clientHeight / 2;
  }

  /**
   * @param {ArrayLike<number>} row weights by key
   * @param {import('../types.js').Transfer} transfer
   * @param {{query: number, key: number}} pick the query whose row it is, and the picked key
   */
  shade(row, transfer, { query, key }) {
    this.buttons.forEach((button, index) => {
      button.style.setProperty('--weight', `${(100 * TRANSFER[transfer](row[index] ?? 0)).toFixed(1)}%`);
      button.classList.toggle('is-query', index === query);
      button.classList.toggle('is-key', index === key);
      button.setAttribute('aria-pressed', String(index === query));
      button.title = weightText(row[index] ?? 0);
    });
  }
}
