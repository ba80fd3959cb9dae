/** What the drawings of a lab's series share: colours, dashes, extents, and the table behind a picture. */

/** @typedef {import('../learn/types.js').Series} Series */
/** @typedef {import('../types.js').Palette} Palette */

/** Apart from the page's own colours, on light and on dark. */
const PURPLE = '#a25fbd';

/** How a line says where its numbers come from. */
export const DASH = { measured: 'solid', theory: 'dash', published: 'solid', estimate: 'dot' };

/** @param {Palette} palette @returns {string[]} colours that stay apart for colour-blind eyes, in order of use */
export const hues = (palette) => [palette.query, palette.key, palette.value, PURPLE, palette.soft, palette.ink, palette.deep];

/** @param {number | null} value @param {boolean} log */
export const drawable = (value, log) => value !== null && Number.isFinite(value) && (!log || value > 0);

/**
 * @param {(number | string | null)[]} values
 * @param {boolean} log
 * @returns {[number, number] | null} of the numbers that can be drawn
 */
export function extent(values, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (typeof value !== 'number' || !drawable(value, log)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

/** @param {Series} series @returns {(string | number)[][]} */
export function tableOf(series) {
  if (series.kind === 'matrix') {
    return [[`${series.y.label} \\ ${series.x.label}`, ...series.columns.map(cell)], ...series.values.map((row, i) => [cell(series.rows[i]), ...row.map(cell)])];
  }
  const banded = series.lines.some(({ band }) => band);
  const head = ['line', 'origin', series.x.label, series.y.label, ...(banded ? ['low', 'high'] : [])];
  return [head, ...series.lines.flatMap(({ name, origin, x, y, band }) => y.map((value, i) => [
    name, origin, cell(x[i]), cell(value), ...(banded ? [cell(band?.[0][i] ?? null), cell(band?.[1][i] ?? null)] : [])]))];
}

/** @param {number | string | null} value */
const cell = (value) => value ?? '';
