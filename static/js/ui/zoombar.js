/** Moves about in a matrix that has more tokens than can be told apart. */
import { el } from './dom.js';

/** @typedef {import('../types.js').Range} Range */
/** @typedef {{rows: Range, cols: Range} | null} Zoom */

/** Up to here every token can be labelled. */
const LEGIBLE = 48;

export class ZoomBar {
  /** @param {HTMLElement} root @param {(zoom: Zoom) => void} onZoom */
  constructor(root, onZoom) {
    this.root = root;
    this.onZoom = onZoom;
    this.near = this.#button('zoom to the pick', () => this.#around(40));
    this.closer = this.#button('closer', () => this.#scale(0.5));
    this.wider = this.#button('wider', () => this.#scale(2));
    this.whole = this.#button('whole text', () => onZoom(null));
    this.words = el('span', { class: 'soft' });
    root.append(this.near, this.closer, this.wider, this.whole, this.words);
    this.tokens = 0;
    this.pair = { query: 0, key: 0 };
    /** @type {{rows: Range, cols: Range}} */
    this.shown = { rows: [0, 0], cols: [0, 0] };
  }

  /** @param {string} text @param {() => void} act */
  #button(text, act) {
    const button = el('button', { type: 'button', class: 'quiet' }, text);
    button.addEventListener('click', act);
    return button;
  }

  /** @param {import('../types.js').Matrix} matrix @param {number} tokens @param {{query: number, key: number}} pair */
  show({ rowRange, colRange }, tokens, pair) {
    [this.tokens, this.pair, this.shown] = [tokens, pair, { rows: rowRange, cols: colRange }];
    const part = rowRange[1] - rowRange[0] < tokens || colRange[1] - colRange[0] < tokens;
    this.root.hidden = tokens <= LEGIBLE && !part;
    this.whole.disabled = this.wider.disabled = !part;
    this.words.textContent = part
      ? `queries ${rowRange[0]}–${rowRange[1] - 1}, keys ${colRange[0]}–${colRange[1] - 1} of ${tokens}`
      : 'or drag over the cells to enlarge them';
  }

  /** @param {number} size */
  #around(size) {
    const window = (/** @type {number} */ centre) => this.#window(centre, size);
    this.onZoom({ rows: window(Math.max(0, this.pair.query)), cols: window(Math.max(0, this.pair.key)) });
  }

  /** @param {number} centre @param {number} size @returns {Range} */
  #window(centre, size) {
    const start = Math.max(0, Math.min(Math.round(centre - size / 2), this.tokens - size));
    return [start, Math.min(this.tokens, start + size)];
  }

  /** @param {number} factor */
  #scale(factor) {
    const next = ([start, end] = /** @type {Range} */ ([0, 0])) => {
      const size = Math.max(4, Math.min(this.tokens, Math.round((end - start) * factor)));
      return this.#window((start + end) / 2, size);
    };
    const zoom = { rows: next(this.shown.rows), cols: next(this.shown.cols) };
    const whole = [zoom.rows, zoom.cols].every(([start, end]) => start === 0 && end === this.tokens);
    this.onZoom(whole ? null : zoom);
  }
}
