/** All heads of a layer as small pictures; pressing one shows it large. */
import { table } from '../colour.js';
import { drawMosaic } from '../figures/mosaic.js';
import { el } from '../ui/dom.js';
import { palette } from '../ui/theme.js';

/** @typedef {import('./types.js').Result} Result */
/** @typedef {import('./lab.js').Lab} Lab */

/** Device pixels of a picture's side, which CSS fits to the page. */
const SIDE = 96;

/** @param {HTMLElement} root @param {Lab} lab */
export default function headPictures(root, lab) {
  /** @type {{button: HTMLButtonElement, canvas: HTMLCanvasElement}[]} */
  let heads = [];
  /** @type {Result | null} */
  let shown = null;
  root.classList.add('head-pictures');
  root.setAttribute('role', 'group');

  /** @param {number} head */
  function made(head) {
    const canvas = el('canvas', { width: SIDE, height: SIDE, 'aria-hidden': 'true' });
    const button = el('button', { type: 'button', 'data-head': head }, canvas, el('span', {}, `H${head}`));
    button.addEventListener('click', () => { void lab.set({ head }); });
    return { button, canvas };
  }

  /** @param {Result} result */
  function show(result) {
    shown = result;
    /** @type {number[][][]} */
    const patterns = result.facts.thumbnails;
    if (heads.length !== patterns.length) {
      heads = patterns.map((_, head) => made(head));
      root.replaceChildren(...heads.map(({ button }) => button));
    }
    root.setAttribute('aria-label', `The heads of layer ${result.facts.layer}`);
    heads.forEach(({ button, canvas }, head) => {
      button.setAttribute('aria-pressed', String(head === result.facts.head));
      button.setAttribute('aria-label', `L${result.facts.layer}H${head}`);
      draw(canvas, patterns[head]);
    });
  }

  lab.onResult(show);
  new MutationObserver(() => { if (shown) show(shown); }).observe(document.documentElement, { attributeFilter: ['data-theme'] });
}

/** @param {HTMLCanvasElement} canvas @param {number[][]} pattern */
function draw(canvas, pattern) {
  const { panel, deep } = palette();
  const data = Uint8Array.from(pattern.flat(), (weight) => Math.round(255 * weight));
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  drawMosaic(context, { shape: [1, 1, pattern.length, pattern[0].length], data, dtype: '|u1' }, { cell: { width: SIDE, height: SIDE }, gap: 0, colours: table(panel, deep, 'power') });
}
