/** A canvas of layers × heads with one button over each head: for the overview and for the map of changes. */
import { el, sharp } from './dom.js';

/** @typedef {import('../types.js').HeadRef} HeadRef */

export class HeadGrid {
  /**
   * @param {{label: string, testid: string, onPick: (ref: HeadRef) => void, onPoint: (ref: HeadRef | null) => void}} options
   */
  constructor(options) {
    this.options = options;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.buttons = el('div', { class: 'head-buttons', role: 'grid', 'aria-label': options.label });
    this.across = el('div', { class: 'head-axis across', 'aria-hidden': 'true' });
    this.down = el('div', { class: 'head-axis down', 'aria-hidden': 'true' });
    this.element = el('div', { class: 'head-grid' }, this.across, this.down, this.canvas, this.buttons);
    /** @type {Map<string, HTMLButtonElement>} */
    this.byHead = new Map();
    this.shape = '';
    this.cell = 0;
    this.buttons.addEventListener('click', (event) => this.#at(event, options.onPick));
    this.buttons.addEventListener('pointerover', (event) => this.#at(event, options.onPoint));
    this.buttons.addEventListener('focusin', (event) => this.#at(event, options.onPoint));
    this.buttons.addEventListener('pointerleave', () => options.onPoint(null));
    this.buttons.addEventListener('keydown', (event) => this.#key(event));
  }

  /**
   * @param {Event} event
   * @param {(ref: HeadRef) => void} tell
   */
  #at(event, tell) {
    const button = /** @type {Element} */ (event.target).closest('button');
    if (button) tell({ layer: Number(button.dataset.layer), head: Number(button.dataset.head) });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const button = /** @type {Element} */ (event.target).closest('button');
    /** @type {Record<string, [number, number]>} */
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (!button || !moves[event.key]) return;
    event.preventDefault();
    const layer = Number(button.dataset.layer) + moves[event.key][0];
    const head = Number(button.dataset.head) + moves[event.key][1];
    const next = this.byHead.get(`${layer}.${head}`);
    if (!next) return;
    next.focus();
    this.options.onPick({ layer, head });
  }

  /**
   * @param {number} layers
   * @param {number} heads
   * @param {{width: number, height: number}} cell CSS pixels
   * @returns {{context: CanvasRenderingContext2D, cell: {width: number, height: number}, gap: number}} for drawing, in device pixels
   */
  layout(layers, heads, cell) {
    const gap = 1;
    const [width, height] = [heads * (cell.width + gap) - gap, layers * (cell.height + gap) - gap];
    const context = sharp(this.canvas, width, height);
    context.setTransform(1, 0, 0, 1, 0, 0);
    const shape = `${layers}×${heads}×${cell.width}×${cell.height}`;
    if (this.shape !== shape) this.#build(layers, heads, cell, gap);
    this.shape = shape;
    const ratio = this.canvas.width / width;
    return { context, cell: { width: Math.round(cell.width * ratio), height: Math.round(cell.height * ratio) }, gap: Math.max(1, Math.round(gap * ratio)) };
  }

  /**
   * @param {number} layers
   * @param {number} heads
   * @param {{width: number, height: number}} cell
   * @param {number} gap
   */
  #build(layers, heads, cell, gap) {
    this.byHead.clear();
    this.element.style.setProperty('--cell', `${cell.width}px`);
    this.element.style.setProperty('--cell-height', `${cell.height}px`);
    this.element.style.setProperty('--gap', `${gap}px`);
    this.element.style.setProperty('--heads', String(heads));
    this.across.replaceChildren(...Array.from({ length: heads }, (_, h) => el('span', {}, String(h))));
    this.down.replaceChildren(...Array.from({ length: layers }, (_, l) => el('span', {}, String(l))));
    this.buttons.replaceChildren(...Array.from({ length: layers }, (_, layer) => el('div', { role: 'row' },
      ...Array.from({ length: heads }, (_, head) => {
        const button = el('button', {
          type: 'button', role: 'gridcell', tabindex: -1, 'data-layer': layer, 'data-head': head,
          'aria-label': `layer ${layer} head ${head}`, 'data-testid': `${this.options.testid}-${layer}-${head}`,
        });
        this.byHead.set(`${layer}.${head}`, button);
        return button;
      }))));
  }

  /** @param {HeadRef | null} ref */
  mark(ref) {
    for (const button of this.byHead.values()) {
      const chosen = ref !== null && Number(button.dataset.layer) === ref.layer && Number(button.dataset.head) === ref.head;
      button.tabIndex = chosen ? 0 : -1;
      button.setAttribute('aria-selected', String(chosen));
    }
    const first = this.byHead.get('0.0');
    if (!ref && first) first.tabIndex = 0;
  }

  /** Scrolls the chosen head into its own box, never the page. @param {HeadRef} ref */
  reveal(ref) {
    const box = this.element.parentElement;
    const button = this.byHead.get(`${ref.layer}.${ref.head}`);
    if (!box || !button || box.scrollHeight <= box.clientHeight) return;
    const top = button.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 40) box.scrollTop = top - box.clientHeight / 2;
  }
}
