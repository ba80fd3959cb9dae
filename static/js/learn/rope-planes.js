/** Planes of a rotary embedding: query and key as arrows that are dragged to other positions, together or apart. */
import { shape } from '../figures/svg.js';
import { el } from '../ui/dom.js';
import { digits } from './answers.js';
import { Latest } from './latest.js';

/** @typedef {import('./types.js').Result} Result */
/** @typedef {import('./lab.js').Lab} Lab */
/** @typedef {[number, number]} Point */
/** @typedef {{plane: number, speed: number, q: Point, k: Point}} Plane one plane: radians a position, and its unturned coordinates */
/** @typedef {'m' | 'n'} Which */
/** @typedef {{figure: HTMLElement, arrows: Record<Which, SVGElement>, tips: Record<Which, SVGElement>, words: HTMLElement, index: number}} Drawn */

const SIDE = 170;
const CENTRE = SIDE / 2;
const REACH = 68;
const PAGE = 16;
/** Shares of the planes, from fast to slow, that are drawn. */
const DRAWN = [0, 1 / 8, 1 / 4, 1 / 2];
const NAMES = { m: 'query', n: 'key' };
const WHICH = /** @type {Which[]} */ (['m', 'n']);

/** @param {HTMLElement} root @param {Lab} lab */
export default function ropePlanes(root, lab) {
  new Planes(root, lab);
}

class Planes {
  /** @param {HTMLElement} root @param {Lab} lab */
  constructor(root, lab) {
    this.lab = lab;
    this.latest = new Latest(() => this.lab.set({ ...this.at }));
    this.together = true;
    /** @type {Plane[]} */
    this.planes = [];
    /** @type {Drawn[]} */
    this.drawn = [];
    this.at = { m: Number(lab.parameters.m), n: Number(lab.parameters.n) };
    this.say = el('p', { class: 'soft', 'aria-live': 'polite' });
    this.row = el('div', { class: 'rope-row' });
    root.classList.add('rope-planes');
    this.legend = { m: el('span', { class: 'role query' }), n: el('span', { class: 'role key' }) };
    root.append(this.#modes(), el('p', { class: 'rope-legend' }, this.legend.m, this.legend.n), this.row, this.say);
    lab.onResult((result) => this.#took(result));
  }

  #modes() {
    const modes = [{ together: true, words: 'Move both' }, { together: false, words: 'Move one' }];
    const buttons = modes.map(({ together, words }) => {
      const button = el('button', { type: 'button', class: 'quiet', 'aria-pressed': String(together), 'data-mode': together ? 'together' : 'apart' }, words);
      button.addEventListener('click', () => {
        this.together = together;
        for (const one of buttons) one.setAttribute('aria-pressed', String(one === button));
      });
      return button;
    });
    return el('div', { class: 'rope-modes', role: 'group', 'aria-label': 'What a drag moves' }, ...buttons);
  }

  /** @param {Result} result */
  #took(result) {
    const planes = /** @type {Plane[]} */ (result.facts.planes);
    const chosen = [...new Set(DRAWN.map((share) => Math.floor(share * planes.length)))];
    if (this.drawn.map(({ index }) => index).join() !== chosen.join()) this.#build(chosen);
    this.planes = planes;
    this.products = /** @type {number[]} */ (result.facts.products);
    // Arrows that were moved on meanwhile stay where they are.
    if (!this.latest.due) this.at = { m: result.facts.m, n: result.facts.n };
    this.#draw();
  }

  /** @param {number[]} chosen */
  #build(chosen) {
    this.drawn = chosen.map((index) => this.#plane(index));
    this.row.replaceChildren(...this.drawn.map(({ figure }) => figure));
  }

  /** @param {number} index @returns {Drawn} */
  #plane(index) {
    const picture = shape('svg', { viewBox: `0 0 ${SIDE} ${SIDE}`, class: 'rope-plane' });
    const arrows = { m: shape('line', { class: 'arrow query', x1: CENTRE, y1: CENTRE }), n: shape('line', { class: 'arrow key', x1: CENTRE, y1: CENTRE }) };
    const tips = { m: this.#tip('m', index), n: this.#tip('n', index) };
    picture.append(shape('circle', { cx: CENTRE, cy: CENTRE, r: REACH, class: 'rim' }), arrows.m, arrows.n, tips.n, tips.m);
    for (const which of WHICH) this.#drags(picture, tips[which], which, index);
    const words = el('figcaption', { class: 'soft' });
    return { figure: el('figure', { 'data-plane': index }, picture, words), arrows, tips, words, index };
  }

  /** @param {Which} which @param {number} index */
  #tip(which, index) {
    const tip = shape('circle', { r: 9, class: `tip ${NAMES[which]}`, role: 'slider', tabindex: 0, 'aria-label': `Position of the ${NAMES[which]}, plane ${index}`, 'data-tip': which });
    tip.addEventListener('keydown', (event) => {
      const { key } = /** @type {KeyboardEvent} */ (event);
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: PAGE, PageDown: -PAGE }[key];
      if (step === undefined) return;
      event.preventDefault();
      this.#move(which, this.at, step);
      void this.latest.ask();
    });
    return tip;
  }

  /** @param {SVGElement} picture @param {SVGElement} tip @param {Which} which @param {number} index */
  #drags(picture, tip, which, index) {
    let [angle, turned] = [0, 0];
    let start = { ...this.at };
    const angleOf = (/** @type {PointerEvent} */ event) => {
      const box = picture.getBoundingClientRect();
      return Math.atan2(box.top + box.height / 2 - event.clientY, event.clientX - box.left - box.width / 2);
    };
    tip.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      tip.focus();
      tip.setPointerCapture(event.pointerId);
      [angle, turned, start] = [angleOf(event), 0, { ...this.at }];
    });
    tip.addEventListener('pointermove', (event) => {
      if (!tip.hasPointerCapture(event.pointerId)) return;
      const now = angleOf(event);
      turned += Math.atan2(Math.sin(now - angle), Math.cos(now - angle));
      angle = now;
      this.#move(which, start, Math.round(turned / this.planes[index].speed));
      void this.latest.ask();
    });
  }

  /**
   * Moves one position or both, as far as there are positions.
   * @param {Which} which @param {{m: number, n: number}} from @param {number} by
   */
  #move(which, from, by) {
    const moving = this.together ? WHICH : [which];
    const most = Number(this.lab.spec.parameters.properties.m.maximum);
    const lowest = Math.min(...moving.map((one) => from[one]));
    const highest = Math.max(...moving.map((one) => from[one]));
    const step = Math.min(most - highest, Math.max(-lowest, by));
    this.say.textContent = step === by ? '' : `There are positions from 0 to ${digits(most)}: it goes no further.`;
    for (const one of moving) this.at[one] = from[one] + step;
    this.#draw();
  }

  #draw() {
    for (const which of WHICH) this.legend[which].textContent = `● ${NAMES[which]} at position ${which} = ${digits(this.at[which])}`;
    for (const one of this.drawn) {
      const plane = this.planes[one.index];
      const longest = Math.max(Math.hypot(...plane.q), Math.hypot(...plane.k)) || 1;
      for (const which of WHICH) this.#point(one, which, which === 'm' ? plane.q : plane.k, plane.speed, REACH / longest);
      one.words.textContent = `plane ${one.index}: one turn in ${digits(2 * Math.PI / plane.speed)} positions; adds ${digits(this.products?.[one.index] ?? null)}`;
    }
  }

  /** @param {Drawn} drawn @param {Which} which @param {Point} coordinates @param {number} speed @param {number} size */
  #point({ arrows, tips }, which, [x, y], speed, size) {
    const position = this.at[which];
    const angle = Math.atan2(y, x) + position * speed;
    const length = Math.hypot(x, y) * size;
    const [right, up] = [CENTRE + length * Math.cos(angle), CENTRE - length * Math.sin(angle)];
    arrows[which].setAttribute('x2', String(right));
    arrows[which].setAttribute('y2', String(up));
    tips[which].setAttribute('cx', String(right));
    tips[which].setAttribute('cy', String(up));
    tips[which].setAttribute('aria-valuenow', String(position));
    tips[which].setAttribute('aria-valuemin', '0');
    tips[which].setAttribute('aria-valuemax', String(this.lab.spec.parameters.properties.m.maximum));
  }
}
