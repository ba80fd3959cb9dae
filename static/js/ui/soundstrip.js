/** The sound as a band of time, shaded by where the query listens. */
import { TRANSFER, css, ramp } from '../colour.js';
import { el, sharp } from './dom.js';
import { weightText } from './format.js';
import { palette } from './theme.js';
import { tooltip } from './tooltip.js';

const HEIGHT = 40;
/** Marks along the band. */
const MARKS = 6;

export class SoundStrip {
  /**
   * @param {HTMLElement} root
   * @param {{onQuery: (index: number) => void, onKey: (index: number) => void}} on
   */
  constructor(root, on) {
    this.root = root;
    this.on = on;
    this.canvas = el('canvas', { tabindex: 0, role: 'slider', 'aria-label': 'Time in the sound: arrow keys move the key' });
    this.marks = el('div', { class: 'sound-marks', 'aria-hidden': 'true' });
    root.append(this.canvas, this.marks);
    /** @type {import('../types.js').Axes} */
    this.axes = { queries: [], keys: [], same: false };
    /** @type {ArrayLike<number>} */
    this.row = [];
    this.frames = 0;
    /** @type {number[]} */
    this.peaks = [];
    this.pick = { query: 0, key: 0 };
    this.canvas.addEventListener('click', (event) => this.#click(event));
    this.canvas.addEventListener('pointermove', (event) => this.#tell(event));
    this.canvas.addEventListener('pointerleave', () => tooltip().hide());
    this.canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  /** @param {import('../types.js').Axes} axes @param {number} frames that hold sound @param {number[]} peaks of the sound, along them */
  render(axes, frames, peaks) {
    this.axes = axes;
    this.peaks = peaks;
    this.frames = frames;
    const { keys } = axes;
    this.canvas.setAttribute('aria-valuemin', '0');
    this.canvas.setAttribute('aria-valuemax', String(frames - 1));
    this.marks.replaceChildren(...Array.from({ length: MARKS + 1 }, (_, i) => {
      const index = Math.min(frames - 1, Math.round((i * frames) / MARKS));
      return el('span', {}, keys[index].text);
    }));
  }

  /**
   * @param {ArrayLike<number>} row
   * @param {import('../types.js').Transfer} transfer
   * @param {{query: number, key: number}} pick
   */
  shade(row, transfer, pick) {
    this.row = row;
    this.pick = pick;
    const width = Math.max(120, this.root.clientWidth || 120);
    const colours = palette();
    const colour = ramp(colours.panel, colours.shade);
    const context = sharp(this.canvas, width, HEIGHT);
    const count = this.frames;
    const covered = (/** @type {number} */ x) => [Math.floor((x * count) / width), Math.max(1, Math.ceil(((x + 1) * count) / width))];
    for (let x = 0; x < width; x += 1) {
      const [start, end] = covered(x);
      let most = 0;
      for (let i = start; i < Math.min(count, end); i += 1) most = Math.max(most, row[i] ?? 0);
      context.fillStyle = css(colour(TRANSFER[transfer](most)));
      context.fillRect(x, 0, 1, HEIGHT);
    }
    this.#wave(context, colours.soft, width);
    this.#mark(context, pick.key, colours.key, width);
    if (this.axes.same) this.#mark(context, pick.query, colours.query, width);
    this.canvas.setAttribute('aria-valuenow', String(Math.max(0, pick.key)));
    this.canvas.setAttribute('aria-valuetext', this.axes.keys[pick.key]?.text ?? 'none');
  }

  /** @param {CanvasRenderingContext2D} context @param {string} colour @param {number} width */
  #wave(context, colour, width) {
    context.fillStyle = colour;
    this.peaks.forEach((peak, i) => {
      const height = Math.max(1, peak * (HEIGHT - 6));
      context.fillRect((i * width) / this.peaks.length, (HEIGHT - height) / 2, Math.max(0.5, (0.5 * width) / this.peaks.length), height);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {number} index @param {string} colour @param {number} width */
  #mark(context, index, colour, width) {
    if (index < 0 || index >= this.frames) return;
    context.fillStyle = colour;
    context.fillRect(Math.round(((index + 0.5) * width) / this.frames) - 1, 0, 2, HEIGHT);
  }

  /** @param {MouseEvent} event */
  #index(event) {
    const { left, width } = this.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(this.frames - 1, Math.floor(((event.clientX - left) * this.frames) / width)));
  }

  /** @param {MouseEvent} event */
  #click(event) {
    if (this.axes.same && !event.shiftKey) this.on.onQuery(this.#index(event));
    else this.on.onKey(this.#index(event));
  }

  /** @param {PointerEvent} event */
  #tell(event) {
    const index = this.#index(event);
    tooltip().show(event.clientX, event.clientY, `${this.axes.keys[index].text}: `, el('b', {}, weightText(this.row[index] ?? 0)));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = this.pick.key + step * (event.shiftKey ? 10 : 1);
    this.on.onKey(Math.max(0, Math.min(this.frames - 1, next)));
  }
}
