/** The tokens along a matrix: all of them, or as many as fit, the picked and the hovered one always. */
import { labelled } from '../figures/axis.js';
import { shape } from '../figures/svg.js';
import { shorten } from '../spans.js';

/** @typedef {import('../types.js').Range} Range */
/** @typedef {{query: number, key: number}} Pair */

const LONGEST = 14;
/** Slanted times are read along the axis, and need fewer labels than words. */
const TIMES = 0.5;

/**
 * @param {SVGElement} svg emptied and filled
 * @param {import('./matrixview.js').Content} content
 * @param {import('../figures/axis.js').Frame} place
 * @param {Pair} pick
 * @param {Pair | null} hovered
 */
export function drawAxisLabels(svg, { matrix, labels, axes }, place, pick, hovered) {
  const kind = (/** @type {import('../types.js').Token[]} */ tokens, /** @type {number} */ i, /** @type {number} */ picked, /** @type {number | undefined} */ under) => `token${
    tokens[i].special ? ' special' : ''}${i === under ? ' hovered' : i === picked ? ' picked' : ''}`;
  const dense = axes.keys[0]?.id === -1 ? TIMES : 1;
  const rows = along(matrix.rowRange, place.height, pick.query, hovered?.query).map(({ i, middle }) => shape('text', {
    x: place.left - 7, y: place.top + middle + 4, 'text-anchor': 'end', class: `${kind(axes.queries, i, pick.query, hovered?.query)} query`,
  }, shorten(labels.queries[i], LONGEST)));
  const columns = along(matrix.colRange, place.width, pick.key, hovered?.key, dense).map(({ i, middle }) => {
    const [x, y] = [place.left + middle + 3, place.top - 6];
    return shape('text', { x, y, transform: `rotate(-45 ${x} ${y})`, class: `${kind(axes.keys, i, pick.key, hovered?.key)} key` },
      shorten(labels.keys[i], LONGEST));
  });
  svg.replaceChildren(...rows, ...columns);
}

/**
 * @param {Range} range
 * @param {number} pixels
 * @param {number} picked
 * @param {number | undefined} hovered
 * @param {number} [dense] labels where one would fit, 1 or less
 * @returns {{i: number, middle: number}[]} tokens to label, and the middle of each in pixels
 */
function along([start, end], pixels, picked, hovered, dense = 1) {
  const marked = hovered ?? (picked >= start && picked < end ? picked : null);
  return labelled(end - start, pixels * dense, marked === null ? null : marked - start)
    .map((offset) => ({ i: offset + start, middle: ((offset + 0.5) * pixels) / (end - start) }));
}
