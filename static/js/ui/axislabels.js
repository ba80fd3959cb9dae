/** The tokens along a matrix: all of them, or as many as fit, the picked and the hovered one always. */
import { labelled } from '../figures/axis.js';
import { shape } from '../figures/svg.js';
import { shorten } from '../spans.js';

/** @typedef {import('../types.js').Range} Range */
/** @typedef {{query: number, key: number}} Pair */

const LONGEST = 14;

/**
 * @param {SVGElement} svg emptied and filled
 * @param {import('./matrixview.js').Content} content
 * @param {import('../figures/axis.js').Frame} place
 * @param {Pair} pick
 * @param {Pair | null} hovered
 */
export function drawAxisLabels(svg, { matrix, labels, specials }, place, pick, hovered) {
  const kind = (/** @type {number} */ i, /** @type {number} */ picked, /** @type {number | undefined} */ under) => `token${
    specials[i] ? ' special' : ''}${i === under ? ' hovered' : i === picked ? ' picked' : ''}`;
  const rows = along(matrix.rowRange, place.height, pick.query, hovered?.query).map(({ i, middle }) => shape('text', {
    x: place.left - 7, y: place.top + middle + 4, 'text-anchor': 'end', class: `${kind(i, pick.query, hovered?.query)} query`,
  }, shorten(labels[i], LONGEST)));
  const columns = along(matrix.colRange, place.width, pick.key, hovered?.key).map(({ i, middle }) => {
    const [x, y] = [place.left + middle + 3, place.top - 6];
    return shape('text', { x, y, transform: `rotate(-45 ${x} ${y})`, class: `${kind(i, pick.key, hovered?.key)} key` },
      shorten(labels[i], LONGEST));
  });
  svg.replaceChildren(...rows, ...columns);
}

/**
 * @param {Range} range
 * @param {number} pixels
 * @param {number} picked
 * @param {number | undefined} hovered
 * @returns {{i: number, middle: number}[]} tokens to label, and the middle of each in pixels
 */
function along([start, end], pixels, picked, hovered) {
  const marked = hovered ?? (picked >= start && picked < end ? picked : null);
  return labelled(end - start, pixels, marked === null ? null : marked - start)
    .map((offset) => ({ i: offset + start, middle: ((offset + 0.5) * pixels) / (end - start) }));
}
