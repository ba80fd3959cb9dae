/** The overview of one trace: every head, its figures, and which one is chosen. */
import { drawMosaic } from '../figures/mosaic.js';
import { table } from '../colour.js';
import { el, find } from './dom.js';
import { headName } from './format.js';
import { HeadGrid } from './headgrid.js';
import { palette } from './theme.js';

/** @typedef {import('../types.js').HeadRef} HeadRef */

const SMALLEST = 24;
const LARGEST = 64;

/** @type {[keyof import('../types.js').HeadFigures, string][]} */
const SHOWN = [['entropy', 'entropy'], ['diagonal', 'itself'], ['previous', 'previous'], ['next', 'next'], ['first', 'first']];

export class HeadMap {
  /**
   * @param {{box: HTMLElement, figures: HTMLElement}} parts
   * @param {{testid: string, onPick: (ref: HeadRef) => void}} options
   */
  constructor({ box, figures }, options) {
    this.box = box;
    this.figures = figures;
    this.grid = new HeadGrid({
      label: 'Heads: arrow keys choose', testid: options.testid, onPick: options.onPick, onPoint: (ref) => this.#describe(ref),
    });
    /** @type {HeadRef | null} */
    this.chosen = null;
    /** @type {import('../types.js').HeadsAnswer | null} */
    this.answer = null;
    /** @type {{tensor: import('../types.js').Tensor, firstLayer: number}[]} */
    this.parts = [];
    /** @type {((part: {tensor: import('../types.js').Tensor, firstLayer: number}) => void) | null} draws some layers as laid out */
    this.draw = null;
    this.layers = 0;
    this.heads = 0;
    this.prefix = '';
    this.aspect = 1;
    box.append(this.grid.element);
  }

  /**
   * @param {number} layers
   * @param {number} heads
   * @param {{prefix: string, aspect: number}} how prefix: before L3H1 where a model has several stacks; aspect: keys by queries
   */
  begin(layers, heads, { prefix, aspect }) {
    this.aspect = Math.max(0.5, Math.min(2, aspect));
    this.layers = layers;
    this.heads = heads;
    this.prefix = prefix;
    this.parts = [];
    this.draw = null;
    this.answer = null;
  }

  /** Draws some more layers where their places are. @param {import('../types.js').Tensor} tensor @param {number} firstLayer */
  add(tensor, firstLayer) {
    const part = { tensor, firstLayer };
    this.parts.push(part);
    this.draw?.(part);
  }

  /** @returns {import('../types.js').Tensor} all layers that have come, in order */
  whole() {
    const ordered = [...this.parts].sort((a, b) => a.firstLayer - b.firstLayer);
    const [, heads, rows, cols] = ordered[0].tensor.shape;
    const data = new Uint8Array(this.layers * heads * rows * cols);
    for (const part of ordered) data.set(/** @type {Uint8Array} */ (part.tensor.data), part.firstLayer * heads * rows * cols);
    return { data, shape: [this.layers, heads, rows, cols], dtype: '|u1' };
  }

  /** @param {import('../types.js').Transfer} transfer */
  paint(transfer) {
    const body = /** @type {HTMLElement} */ (this.box.closest('.over-body'));
    const available = body.clientWidth;
    if (!this.layers || !available) return;
    const across = Math.floor((available - 28) / this.heads) - 1;
    const cell = this.#cell(Math.max(SMALLEST, Math.min(across, Math.floor(760 / this.layers) - 1, LARGEST)));
    const { context, cell: pixels, gap } = this.grid.layout(this.layers, this.heads, cell);
    // a tall model leaves room beside its picture
    const tall = this.heads * (cell.width + 1) + 28 < 0.75 * available;
    if (body.classList.toggle('tall', tall)) /** @type {HTMLDetailsElement} */ (find(body, '.definitions')).open = true;
    const colours = palette();
    context.fillStyle = colours.line;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    const lookup = table(colours.panel, colours.deep, transfer);
    this.draw = ({ tensor, firstLayer }) => drawMosaic(context, tensor, { cell: pixels, gap, colours: lookup, firstLayer });
    this.parts.forEach(this.draw);
    this.grid.mark(this.chosen);
  }

  /**
   * @param {number} size of a square cell
   * @returns {{width: number, height: number}} wider than high as the matrix is, at most twice
   */
  #cell(size) {
    return { width: Math.max(SMALLEST, Math.round(size * Math.min(1, this.aspect))), height: Math.max(SMALLEST, Math.round(size / Math.max(1, this.aspect))) };
  }

  /** @param {HeadRef} ref */
  choose(ref) {
    this.chosen = ref;
    this.grid.mark(ref);
    this.grid.reveal(ref);
    this.#describe(null);
  }

  /** @param {import('../types.js').HeadsAnswer} answer */
  setFigures(answer) {
    this.answer = answer;
    this.box.dataset.figures = 'ready';
    find(/** @type {HTMLElement} */ (this.box.closest('.over-body')), '.definitions dl').replaceChildren(
      ...SHOWN.map(([key, word]) => el('div', {}, el('dt', {}, word), el('dd', {}, answer.definitions[key] ?? ''))));
    this.#describe(null);
  }

  /** @param {HeadRef | null} pointed */
  #describe(pointed) {
    const ref = pointed ?? this.chosen;
    if (!ref) return;
    const figures = this.answer?.sites[ref.layer]?.heads[ref.head];
    const name = el('b', {}, headName(ref, this.prefix));
    if (!figures) {
      this.figures.replaceChildren(name, el('span', { class: 'soft' }, 'figures are being computed…'));
      return;
    }
    this.figures.replaceChildren(name, ...SHOWN.map(([key, word]) => el('span', { title: this.answer?.definitions[key] ?? '' },
      `${word} `, el('b', {}, figures[key] === null ? '–' : figures[key].toFixed(2)))));
  }
}
