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
    this.tokens = { rows: 0, cols: 0 };
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

  /** @param {import('../types.js').Matrix} matrix @param {{rows: number, cols: number}} tokens @param {{query: number, key: number}} pair */
  show({ rowRange, colRange }, tokens, pair) {
    [this.tokens, this.pair, this.shown] = [tokens, pair, { rows: rowRange, cols: colRange }];
    const part = rowRange[1] - rowRange[0] < tokens.rows || colRange[1] - colRange[0] < tokens.cols;
    this.root.hidden = Math.max(tokens.rows, tokens.cols) <= LEGIBLE && !part;
    this.whole.disabled = this.wider.disabled = !part;
    this.words.textContent = part
      ? `queries ${rowRange[0]}–${rowRange[1] - 1}, keys ${colRange[0]}–${colRange[1] - 1} of ${tokens.rows === tokens.cols ? tokens.rows : `${tokens.rows} and ${tokens.cols}`}`
      : 'or drag over the cells to enlarge them';
  }

  /** @param {number} size */
  #around(size) {
    const { rows, cols } = this.tokens;
    this.onZoom({ rows: around(Math.max(0, this.pair.query), size, rows), cols: around(Math.max(0, this.pair.key), size, cols) });
  }

  /** @param {number} factor */
  #scale(factor) {
    const next = (/** @type {Range} */ [start, end], /** @type {number} */ count) => {
      const size = Math.max(4, Math.min(count, Math.round((end - start) * factor)));
      return around((start + end) / 2, size, count);
    };
    const { rows, cols } = this.tokens;
    const zoom = { rows: next(this.shown.rows, rows), cols: next(this.shown.cols, cols) };
    const whole = zoom.rows[1] - zoom.rows[0] === rows && zoom.cols[1] - zoom.cols[0] === cols;
    this.onZoom(whole ? null : zoom);
  }
}

/** @param {number} centre @param {number} size @param {number} count @returns {Range} so many of `count` tokens */
function around(centre, size, count) {
  const start = Math.max(0, Math.min(Math.round(centre - size / 2), count - size));
  return [start, Math.min(count, start + size)];
}
