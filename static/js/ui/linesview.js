/** The head as lines from queries to keys. */
import { FAINTEST, drawLines } from '../figures/lines.js';
import { shape } from '../figures/svg.js';
import { shorten } from '../spans.js';
import { el } from './dom.js';

/** Pixels over which a sound is laid, whose frames are too many to be read one by one. */
const SOUND_HEIGHT = 600;

export class LinesView {
  /** @param {HTMLElement} root @param {(change: {query?: number, key?: number}) => void} onPick */
  constructor(root, onPick) {
    this.root = root;
    this.svg = /** @type {SVGSVGElement} */ (shape('svg', { class: 'head-lines', role: 'img' }));
    this.note = el('p', { class: 'soft caption' });
    root.append(this.note, this.svg);
    this.svg.addEventListener('click', (event) => {
      const text = /** @type {Element} */ (event.target).closest('text');
      if (text?.hasAttribute('data-query')) onPick({ query: Number(text.getAttribute('data-query')) });
      if (text?.hasAttribute('data-key')) onPick({ key: Number(text.getAttribute('data-key')) });
    });
  }

  /**
   * A pooled picture has no lines of its own: the picked query's row, which is exact, is drawn alone.
   * @param {import('./matrixview.js').Content} content
   * @param {{query: number, key: number}} pair
   * @param {ArrayLike<number>} row
   */
  show({ matrix, labels, axes, transfer }, pair, row) {
    const alone = !matrix.exact;
    const source = alone ? {
      data: Float32Array.from(row), rows: 1, cols: labels.keys.length, exact: true,
      rowRange: /** @type {[number, number]} */ ([pair.query, pair.query + 1]), colRange: /** @type {[number, number]} */ ([0, labels.keys.length]),
    } : matrix;
    const longest = Math.max(source.rowRange[1] - source.rowRange[0], source.colRange[1] - source.colRange[0]);
    this.note.textContent = `weights of ${FAINTEST} and more; the picked query stands out${alone ? '; the text is long, so only its lines are drawn' : ''}`;
    const short = (/** @type {string[]} */ words) => words.map((word) => shorten(word, 14));
    drawLines(this.svg, source, { queries: short(labels.queries), keys: short(labels.keys) }, {
      width: Math.max(240, this.root.clientWidth), pitch: longest > 64 ? 15 : 22, transfer, alone, ...pair,
      spread: !axes.same, tallest: axes.keys[0]?.id === -1 ? SOUND_HEIGHT : Infinity,
    });
    this.svg.setAttribute('aria-label', 'lines from queries on the left to keys on the right');
  }
}
