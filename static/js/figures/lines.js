/** One head as lines: queries on the left, keys on the right, width and strength by weight. */
import { TRANSFER } from '../colour.js';
import { labelled } from './axis.js';
import { shape } from './svg.js';

/** @typedef {import('../types.js').Range} Range */

/** Lines drawn at most, the strongest first: more cannot be told apart. */
const MOST_LINES = 1500;
/** Weights under this are not drawn. */
export const FAINTEST = 0.01;

/**
 * @typedef {{query: number, key: number, weight: number}} Line
 * @param {import('../types.js').Matrix} matrix exact
 * @param {number | null} only a query to draw alone
 * @returns {Line[]} strongest last, so that they lie on top
 */
export function linesOf(matrix, only) {
  /** @type {Line[]} */
  const lines = [];
  for (let r = 0; r < matrix.rows; r += 1) {
    const query = r + matrix.rowRange[0];
    if (only !== null && query !== only) continue;
    for (let c = 0; c < matrix.cols; c += 1) {
      const weight = matrix.data[r * matrix.cols + c];
      if (weight >= FAINTEST) lines.push({ query, key: c + matrix.colRange[0], weight });
    }
  }
  return lines.sort((a, b) => a.weight - b.weight).slice(-MOST_LINES);
}

/**
 * @param {SVGElement} svg emptied and filled
 * @param {import('../types.js').Matrix} matrix
 * @param {{queries: string[], keys: string[]}} labels by token index
 * @param {{width: number, pitch: number, query: number, key: number, transfer: import('../types.js').Transfer,
 *   alone: boolean, spread: boolean, tallest: number}} options alone: draw only the picked query's lines; spread: the shorter
 *   side stands in the middle of the longer; tallest: pixels, beyond which tokens move together and share labels
 */
export function drawLines(svg, matrix, labels, { width, pitch, query, key, transfer, alone, spread, tallest }) {
  const [q0, q1] = matrix.rowRange;
  const [k0, k1] = matrix.colRange;
  const length = Math.min(tallest, Math.max(q1 - q0, k1 - k0) * pitch);
  const height = length + 26;
  const gutter = Math.min(140, width * 0.3);
  const [left, right] = [gutter, width - gutter];
  const along = (/** @type {Range} */ [start, end]) => {
    const step = Math.min(pitch, length / (end - start));
    const top = 24 + (spread ? (length - step * (end - start)) / 2 : 0);
    return (/** @type {number} */ index) => (index - start + 0.5) * step + top;
  };
  const [queryY, keyY] = [along(matrix.rowRange), along(matrix.colRange)];
  svg.replaceChildren();
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
    svg.setAttribute(name, String(value));
  }
  const bundle = shape('g', { class: 'link-lines' });
  for (const line of linesOf(matrix, alone ? query : null)) {
    const picked = line.query === query;
    bundle.append(shape('line', {
      x1: left, y1: queryY(line.query), x2: right, y2: keyY(line.key),
      class: picked && line.key === key ? 'link pair' : picked ? 'link picked' : 'link',
      'stroke-opacity': TRANSFER[transfer](line.weight) * (picked || alone ? 1 : 0.35),
      'stroke-width': picked ? 1.2 + 2.4 * line.weight : 1,
    }));
  }
  svg.append(bundle,
    shape('text', { x: left - 8, y: 12, 'text-anchor': 'end', class: 'axis query' }, 'queries'),
    shape('text', { x: right + 8, y: 12, class: 'axis key' }, 'keys'));
  for (const i of shownOf(matrix.rowRange, length, query)) svg.append(label(left - 8, queryY(i), 'end', labels.queries[i], 'query', i, i === query));
  for (const i of shownOf(matrix.colRange, length, key)) svg.append(label(right + 8, keyY(i), 'start', labels.keys[i], 'key', i, i === key));
}

/** @param {Range} range @param {number} length @param {number} picked @returns {number[]} tokens whose labels fit */
function shownOf([start, end], length, picked) {
  const marked = picked >= start && picked < end ? picked - start : null;
  return labelled(end - start, length, marked).map((offset) => offset + start);
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} anchor
 * @param {string} text
 * @param {'query' | 'key'} role
 * @param {number} index
 * @param {boolean} picked
 */
function label(x, y, anchor, text, role, index, picked) {
  return shape('text', {
    x, y: y + 4, 'text-anchor': anchor, class: `token ${role}${picked ? ' picked' : ''}`, [`data-${role}`]: index,
  }, text);
}
