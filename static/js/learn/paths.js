/** The way of information between two positions, by architecture: one line each, its hops as arcs. */
import { shape } from '../figures/svg.js';
import { el } from '../ui/dom.js';
import { Latest } from './latest.js';

/** @typedef {import('./types.js').Result} Result */
/** @typedef {import('./lab.js').Lab} Lab */
/** @typedef {'source' | 'target'} End */
/** @typedef {{name: string, hops: number | null, route: number[]}} Route */

const HANDLES = 46;
const ROW = 86;
const NAME = 28;
const MARGIN = 16;
const ENDS = /** @type {End[]} */ (['source', 'target']);
const PAGE = 5;
/** Half of a label's width. */
const LABEL = 50;

/** @param {HTMLElement} root @param {Lab} lab */
export default function paths(root, lab) {
  new Paths(root, lab);
}

class Paths {
  /** @param {HTMLElement} root @param {Lab} lab */
  constructor(root, lab) {
    this.root = root;
    this.lab = lab;
    this.latest = new Latest(() => this.lab.set({ ...this.at }));
    this.length = Number(lab.parameters.length);
    /** @type {Route[]} */
    this.routes = [];
    this.at = { source: Number(lab.parameters.source), target: Number(lab.parameters.target) };
    this.ends = { source: this.#handle('source'), target: this.#handle('target') };
    this.places = { source: shape('text', { y: 42, class: 'place' }), target: shape('text', { y: 42, class: 'place' }) };
    this.rail = shape('line', { x1: MARGIN, y1: 16, y2: 16, class: 'rail' });
    this.rows = shape('g', {});
    this.drawing = shape('svg', { class: 'paths-drawing', role: 'group', 'aria-label': 'Ways between two positions' });
    // The ends stay in the document while they are moved: one taken out loses the focus and the pointer.
    this.drawing.append(tip(), this.rail, ...ENDS.flatMap((end) => [this.ends[end], this.places[end]]), this.rows);
    root.classList.add('paths');
    root.append(el('p', { class: 'soft' }, 'Drag the two ends, or pick one and use the arrow keys.'), this.drawing);
    new ResizeObserver(() => this.#draw()).observe(root);
    lab.onResult((result) => this.#took(result));
  }

  /** @param {Result} result */
  #took(result) {
    this.routes = /** @type {Route[]} */ (result.facts.routes);
    this.length = Number(result.facts.length);
    if (!this.latest.due) this.at = { source: result.facts.source, target: result.facts.target };
    this.#draw();
  }

  /** @param {End} end */
  #handle(end) {
    const handle = shape('circle', { r: 11, class: `end ${end}`, role: 'slider', tabindex: 0, 'aria-label': `Position of the ${end}`, 'data-end': end });
    handle.addEventListener('keydown', (event) => {
      const { key } = /** @type {KeyboardEvent} */ (event);
      const goal = { ArrowRight: this.at[end] + 1, ArrowUp: this.at[end] + 1, ArrowLeft: this.at[end] - 1, ArrowDown: this.at[end] - 1, PageUp: this.at[end] + PAGE, PageDown: this.at[end] - PAGE, Home: 0, End: this.length - 1 }[key];
      if (goal === undefined) return;
      event.preventDefault();
      this.#move(end, goal);
    });
    handle.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      handle.focus();
      handle.setPointerCapture(event.pointerId);
    });
    handle.addEventListener('pointermove', (event) => {
      if (handle.hasPointerCapture(event.pointerId)) this.#move(end, this.#position(event.clientX));
    });
    return handle;
  }

  /** @param {number} clientX */
  #position(clientX) {
    return Math.round((clientX - this.drawing.getBoundingClientRect().left - MARGIN) / this.#step());
  }

  /** Pixels from one position to the next. */
  #step() {
    return (Math.max(this.root.clientWidth, 200) - 2 * MARGIN) / Math.max(this.length - 1, 1);
  }

  /** Moves an end as far as there are positions. @param {End} end @param {number} goal */
  #move(end, goal) {
    const place = Math.min(this.length - 1, Math.max(0, goal));
    if (place === this.at[end]) return;
    this.at[end] = place;
    this.#draw();
    void this.latest.ask();
  }

  #draw() {
    const width = Math.max(this.root.clientWidth, 200);
    const height = HANDLES + ROW * this.routes.length;
    this.drawing.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.drawing.setAttribute('width', String(width));
    this.drawing.setAttribute('height', String(height));
    this.rail.setAttribute('x2', String(MARGIN + this.#step() * (this.length - 1)));
    for (const end of ENDS) this.#place(end);
    this.rows.replaceChildren(...this.routes.map((route, i) => this.#row(route, HANDLES + ROW * i)));
  }

  /** @param {End} end */
  #place(end) {
    const handle = this.ends[end];
    const x = MARGIN + this.at[end] * this.#step();
    for (const [name, value] of Object.entries({ cx: x, cy: 16, 'aria-valuemin': 0, 'aria-valuemax': this.length - 1, 'aria-valuenow': this.at[end] })) handle.setAttribute(name, String(value));
    // Ends that share a position share its label too.
    const together = this.at.source === this.at.target;
    const words = together ? (end === 'source' ? `source and target ${this.at[end]}` : '') : `${end} ${this.at[end]}`;
    this.places[end].setAttribute('x', String(x));
    this.places[end].setAttribute('text-anchor', this.#anchor(end, x));
    this.places[end].textContent = words;
  }

  /** Labels stay inside, and off each other where the ends are near. @param {End} end @param {number} x */
  #anchor(end, x) {
    const other = this.at[end === 'source' ? 'target' : 'source'];
    const near = Math.abs(other - this.at[end]) * this.#step() < 2 * LABEL;
    if (x < LABEL) return 'start';
    if (x > MARGIN + this.#step() * (this.length - 1) + MARGIN - LABEL) return 'end';
    return near && other !== this.at[end] ? (this.at[end] < other ? 'end' : 'start') : 'middle';
  }

  /** @param {Route} route @param {number} top */
  #row(route, top) {
    const row = shape('g', { transform: `translate(0 ${top})`, 'data-route': route.name, 'data-hops': route.hops ?? 'none' });
    const base = ROW - 10;
    const hops = route.hops === null ? 'no path' : `${route.hops} ${route.hops === 1 ? 'hop' : 'hops'}`;
    row.append(shape('text', { x: 0, y: NAME - 8, class: 'name' }, `${route.name}: ${hops}`));
    for (let position = 0; position < this.length; position += 1) row.append(this.#dot(position, route, base));
    for (let hop = 1; hop < route.route.length; hop += 1) row.append(this.#arc(route.route[hop - 1], route.route[hop], base));
    return row;
  }

  /** @param {number} position @param {Route} route @param {number} base */
  #dot(position, route, base) {
    const [first, last] = [route.route[0], route.route.at(-1)];
    const kind = position === last ? 'target' : position === first ? 'source' : route.route.includes(position) ? 'passed' : '';
    return shape('circle', { cx: MARGIN + position * this.#step(), cy: base, r: Math.min(4.5, this.#step() / 2.6), class: `dot ${kind}` });
  }

  /** @param {number} from @param {number} to @param {number} base */
  #arc(from, to, base) {
    const [start, end] = [from, to].map((position) => MARGIN + position * this.#step());
    const lift = Math.min(base - NAME - 2, 10 + Math.abs(end - start) * 0.3);
    return shape('path', { d: `M${start} ${base - 4}C${start} ${base - 4 - lift} ${end} ${base - 4 - lift} ${end} ${base - 5}`, class: 'hop', 'marker-end': 'url(#paths-tip)' });
  }
}

/** The head of an arrow. */
function tip() {
  const marker = shape('marker', { id: 'paths-tip', viewBox: '0 0 6 6', refX: 5, refY: 3, markerWidth: 6, markerHeight: 6, orient: 'auto' });
  marker.append(shape('path', { d: 'M0 0L6 3L0 6Z', class: 'tip' }));
  return marker;
}
