/** What lies over the cells: labels, outlines of the pick, the cross-hair, and all input. */
import { covered } from '../cells.js';
import { labelled } from '../figures/axis.js';
import { shape } from '../figures/svg.js';
import { drawAxisLabels } from './axislabels.js';
import { el, role } from './dom.js';
import { weightText } from './format.js';
import { tooltip } from './tooltip.js';

/** @typedef {import('../types.js').Range} Range */
/** @typedef {import('../figures/axis.js').Frame} Frame */
/** @typedef {import('./matrixview.js').Content} Content */

/** A pointer that moved less than this has clicked, not dragged. */
const DRAG = 6;

/** @type {Record<string, [number, number]>} */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class MatrixOverlay {
  /**
   * @param {{onPick: (rows: Range, cols: Range) => void, onPoint: (query: number | null) => void,
   *   onMove: (query: number, key: number) => void, onZoom: (rows: Range, cols: Range) => void}} on
   */
  constructor(on) {
    this.on = on;
    this.labels = /** @type {SVGSVGElement} */ (shape('svg', { class: 'axis-labels', 'aria-hidden': 'true' }));
    this.row = el('div', { class: 'outline query' });
    this.column = el('div', { class: 'outline key' });
    this.crossRow = el('div', { class: 'cross' });
    this.crossColumn = el('div', { class: 'cross' });
    this.box = el('div', { class: 'zoom-box' });
    this.hit = el('div', {
      class: 'hit', tabindex: 0, role: 'application', 'data-testid': 'cells', 'aria-roledescription': 'attention matrix',
    }, this.row, this.column, this.crossRow, this.crossColumn, this.box);
    this.elements = [this.labels, this.hit];
    /** @type {Content | null} */
    this.content = null;
    /** @type {Frame | null} */
    this.place = null;
    this.pick = { query: 0, key: 0 };
    /** @type {{x: number, y: number} | null} */
    this.pressed = null;
    this.#hide();
    this.hit.addEventListener('pointermove', (event) => this.#move(event));
    this.hit.addEventListener('pointerleave', () => this.#leave());
    this.hit.addEventListener('pointerdown', (event) => { this.pressed = this.#at(event); });
    this.hit.addEventListener('pointerup', (event) => this.#release(event));
    this.hit.addEventListener('keydown', (event) => this.#key(event));
  }

  /** @param {Content} content @param {Frame} place */
  lay(content, place) {
    [this.content, this.place] = [content, place];
    Object.assign(this.hit.style, {
      left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px`,
    });
    this.labels.setAttribute('width', String(place.fullWidth));
    this.labels.setAttribute('height', String(place.fullHeight));
    this.#hide();
  }

  /** @param {{query: number, key: number}} pick */
  mark(pick) {
    this.pick = pick;
    const { content, place } = this;
    if (!content || !place) return;
    const row = this.#strip(pick.query, content.matrix.rowRange, place.height);
    const column = this.#strip(pick.key, content.matrix.colRange, place.width);
    band(this.row, row, { x: 0, y: 1, length: place.width });
    band(this.column, column, { x: 1, y: 0, length: place.height });
    const [query, key] = [content.labels.queries[pick.query], content.labels.keys[pick.key]];
    const weight = this.#weight(pick.query, pick.key);
    this.hit.setAttribute('aria-label', `Picked: ${query} looks at ${key}${weight === null ? '' : `, weight ${weight}`}. Arrow keys move.`);
    this.#label(null);
  }

  /** @param {number} index @param {Range} range @param {number} pixels */
  #strip(index, range, pixels) {
    const unit = pixels / (range[1] - range[0]);
    const inside = index >= range[0] && index < range[1];
    return { start: (index - range[0]) * unit, size: Math.max(unit, 3), inside };
  }

  /** @param {{query: number, key: number} | null} hovered */
  #label(hovered) {
    if (this.content && this.place) drawAxisLabels(this.labels, this.content, this.place, this.pick, hovered);
  }

  /** @param {number} query @param {number} key @returns {string | null} null where the picture does not hold it exactly */
  #weight(query, key) {
    const { matrix, mask } = /** @type {Content} */ (this.content);
    const [r, c] = [query - matrix.rowRange[0], key - matrix.colRange[0]];
    if (!matrix.exact || r < 0 || c < 0 || r >= matrix.rows || c >= matrix.cols) return null;
    const i = r * matrix.cols + c;
    return mask && !mask.data[i] ? 'masked' : weightText(matrix.data[i]);
  }

  /** @param {PointerEvent} event */
  #at(event) {
    const bounds = this.hit.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  }

  /** @param {{x: number, y: number}} point @returns {{row: number, col: number, rows: Range, cols: Range} | null} */
  #cell({ x, y }) {
    const { content, place } = this;
    if (!content || !place) return null;
    const { matrix } = content;
    const row = Math.min(matrix.rows - 1, Math.max(0, Math.floor((y / place.height) * matrix.rows)));
    const col = Math.min(matrix.cols - 1, Math.max(0, Math.floor((x / place.width) * matrix.cols)));
    const rows = covered(matrix.rowRange[1] - matrix.rowRange[0], matrix.rows, row);
    const cols = covered(matrix.colRange[1] - matrix.colRange[0], matrix.cols, col);
    return {
      row, col,
      rows: [rows[0] + matrix.rowRange[0], rows[1] + matrix.rowRange[0]],
      cols: [cols[0] + matrix.colRange[0], cols[1] + matrix.colRange[0]],
    };
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const point = this.#at(event);
    const cell = this.#cell(point);
    if (!cell || !this.place || !this.content) return;
    if (this.pressed && event.buttons) return this.#stretch(point);
    const { place, content: { matrix } } = this;
    band(this.crossRow, { start: cell.row * place.cellHeight, size: place.cellHeight, inside: true }, { x: 0, y: 1, length: place.width });
    band(this.crossColumn, { start: cell.col * place.cellWidth, size: place.cellWidth, inside: true }, { x: 1, y: 0, length: place.height });
    if (labelled(matrix.rowRange[1] - matrix.rowRange[0], place.height, null).length < matrix.rowRange[1] - matrix.rowRange[0]) {
      this.#label({ query: cell.rows[0], key: cell.cols[0] });
    }
    tooltip().show(event.clientX, event.clientY, ...this.#words(cell));
    this.on.onPoint(cell.rows[0]);
  }

  /** @param {{row: number, col: number, rows: Range, cols: Range}} cell */
  #words({ row, col, rows, cols }) {
    const { matrix, mask, labels } = /** @type {Content} */ (this.content);
    const i = row * matrix.cols + col;
    const closed = mask && !mask.data[i];
    const name = (/** @type {string[]} */ words, /** @type {Range} */ [a, b]) => (b - a > 1 ? `${words[a]} … ${words[b - 1]}` : words[a]);
    const most = rows[1] - rows[0] > 1 || cols[1] - cols[0] > 1 ? 'at most ' : '';
    return [role('query', name(labels.queries, rows)), ' → ', role('key', name(labels.keys, cols)), ': ', el('b', {}, closed ? 'masked' : most + weightText(matrix.data[i]))];
  }

  /** @param {{x: number, y: number}} point */
  #stretch(point) {
    const from = /** @type {{x: number, y: number}} */ (this.pressed);
    const [x, y] = [Math.min(from.x, point.x), Math.min(from.y, point.y)];
    const [width, height] = [Math.abs(point.x - from.x), Math.abs(point.y - from.y)];
    this.box.hidden = Math.max(width, height) < DRAG;
    Object.assign(this.box.style, { transform: `translate(${x}px, ${y}px)`, width: `${width}px`, height: `${height}px` });
    tooltip().hide();
  }

  /** @param {PointerEvent} event */
  #release(event) {
    const [from, to] = [this.pressed, this.#at(event)];
    this.pressed = null;
    if (!from) return;
    const dragged = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y)) >= DRAG && !this.box.hidden;
    this.box.hidden = true;
    const [first, last] = [this.#cell(from), this.#cell(to)];
    if (!first || !last) return;
    if (!dragged) this.on.onPick(first.rows, first.cols);
    else this.on.onZoom(union(first.rows, last.rows), union(first.cols, last.cols));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const move = MOVES[event.key];
    if (!move || !this.content || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const stride = event.shiftKey ? 10 : 1;
    const { queries, keys } = this.content.labels;
    const within = (/** @type {string[]} */ words, /** @type {number} */ i) => Math.min(words.length - 1, Math.max(0, i));
    this.on.onMove(within(queries, this.pick.query + move[0] * stride), within(keys, this.pick.key + move[1] * stride));
  }

  #hide() {
    for (const node of [this.crossRow, this.crossColumn, this.box]) node.hidden = true;
  }

  #leave() {
    this.#hide();
    this.pressed = null;
    tooltip().hide();
    this.#label(null);
    this.on.onPoint(null);
  }
}

/** @param {Range} a @param {Range} b @returns {Range} */
const union = (a, b) => [Math.min(a[0], b[0]), Math.max(a[1], b[1])];

/**
 * Moves a band over a row (y = 1) or a column (x = 1), by transform alone so that nothing is laid out again.
 * @param {HTMLElement} node
 * @param {{start: number, size: number, inside: boolean}} strip
 * @param {{x: number, y: number, length: number}} along
 */
function band(node, { start, size, inside }, { x, y, length }) {
  node.hidden = !inside;
  node.style.width = `${x ? size : length}px`;
  node.style.height = `${y ? size : length}px`;
  node.style.transform = `translate(${x * start}px, ${y * start}px)`;
}
