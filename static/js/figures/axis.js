/** Where a matrix and its token labels stand. Pure geometry, in CSS pixels. */

/** Width of one monospace character at the label size. */
const CHARACTER = 7.3;
const LABEL_STEP = 15;
const LEGIBLE = 24;
const MOST_CHARACTERS = 14;
const LEAN = Math.SQRT1_2;

/**
 * @typedef {{left: number, top: number, width: number, height: number, cellWidth: number, cellHeight: number,
 *   fullWidth: number, fullHeight: number}} Frame
 */

/** @param {string[]} labels */
const longest = (labels) => Math.min(MOST_CHARACTERS, Math.max(2, ...labels.map((text) => [...text].length)));

/**
 * @param {string[]} labels
 * @param {number} step pixels from one column to the next
 * @returns {number} pixels by which slanted labels stand out to the right of the last column
 */
function overhang(labels, step) {
  const last = labels.slice(-12);
  const out = last.map((text, i) => Math.min(MOST_CHARACTERS, [...text].length) * CHARACTER * LEAN - (last.length - i - 0.5) * step);
  return Math.max(6, ...out.map((pixels) => Math.ceil(pixels) + 6));
}

/**
 * @param {string[]} rowLabels
 * @param {string[]} colLabels
 * @param {number} rows cells drawn, fewer than labels when pooled
 * @param {number} cols
 * @param {number} available pixels across
 * @returns {Frame} cells are square where both sides have as many tokens, or room enough
 */
export function frame(rowLabels, colLabels, rows, cols, available) {
  const left = Math.ceil(longest(rowLabels) * CHARACTER) + 8;
  const slant = Math.ceil(longest(colLabels) * CHARACTER * LEAN);
  const room = Math.max(80, available - left - overhang(colLabels, (available - left) / colLabels.length));
  const cell = Math.min(room / cols, 560 / rows, 56);
  // in a lopsided matrix the shorter side's cells are stretched until their labels fit
  const least = rowLabels.length === colLabels.length ? cell : Math.max(cell, LEGIBLE);
  const width = Math.round(Math.min(room / cols, least) * cols);
  const height = Math.round(Math.min(560 / rows, least) * rows);
  const top = slant + 12;
  return {
    left, top, width, height, cellWidth: width / cols, cellHeight: height / rows,
    fullWidth: available, fullHeight: top + height + 2,
  };
}

/**
 * @param {number} count tokens on the axis
 * @param {number} pixels length of the axis
 * @param {number | null} marked a token that must be labelled
 * @returns {number[]} tokens whose labels fit
 */
export function labelled(count, pixels, marked) {
  const step = Math.max(1, Math.ceil((LABEL_STEP * count) / pixels));
  const indices = [];
  for (let i = 0; i < count; i += step) {
    if (marked === null || i === marked || step === 1 || Math.abs(i - marked) >= step) indices.push(i);
  }
  if (marked !== null && !indices.includes(marked)) indices.push(marked);
  return indices.sort((a, b) => a - b);
}
