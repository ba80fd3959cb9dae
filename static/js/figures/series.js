/** What the drawings of a lab's series share: colours, dashes, extents, and the table behind a picture. */

/** @typedef {import('../learn/types.js').Series} Series */
/** @typedef {import('../types.js').Palette} Palette */

/** How a line says where its numbers come from. */
export const DASH = { measured: 'solid', theory: 'dash', published: 'solid', estimate: 'dot' };

/** Colours that are apart from those of query, key and value, and from each other for colour-blind eyes, on light and on dark. */
const LIGHT = ['#8e3a9d', '#8a7400', '#1c1f23', '#d0486b', '#6a70d8', '#7a4a24', '#7b8087'];
const DARK = ['#d79be0', '#d8cf5a', '#e8e9ea', '#ff7f96', '#9aa0ff', '#b98a62', '#8b929a'];

/** @param {Palette} palette @returns {string[]} in order of use */
export const hues = (palette) => (lightness(palette.panel) > 0.5 ? LIGHT : DARK);

/** @param {string} hex @returns {number} 0 to 1, roughly */
function lightness(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  return 0.3 * r + 0.6 * g + 0.1 * b;
}

/** Names that have a colour of their own, in the words of the page too. @type {['query' | 'key' | 'value', RegExp][]} */
const ROLES = [['query', /^(q|query|queries)( (at|of|from) .*)?$/i], ['key', /^(k|keys?)( (at|of|from) .*)?$/i], ['value', /^(v|values?)( (at|of|from) .*)?$/i]];

/** The place among the colours that a name has got on this page. @type {Map<string, number>} */
const given = new Map();

/**
 * @param {string[]} names of the lines of one picture
 * @param {Palette} palette
 * @returns {{colour: string, place: number}[]} none twice as long as there are enough; a name keeps its own from picture to picture
 */
export function coloursOf(names, palette) {
  const all = hues(palette);
  /** @type {Set<number>} */
  const taken = new Set();
  const held = names.map((name) => {
    const place = given.get(name);
    if (place === undefined || taken.has(place)) return null;
    taken.add(place);
    return place;
  });
  return names.map((name, i) => {
    const role = ROLES.find(([, pattern]) => pattern.test(name));
    if (role) return { colour: palette[role[0]], place: 0 };
    let place = held[i];
    if (place === null) {
      place = all.findIndex((_, one) => !taken.has(one));
      if (place < 0) place = i % all.length;
      taken.add(place);
      if (!given.has(name)) given.set(name, place);
    }
    return { colour: all[place], place };
  });
}

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

/**
 * @param {import('../learn/types.js').Line[]} lines
 * @returns {number[]} for each line the index of an earlier one that it lies on, or -1
 */
export function coinciding(lines) {
  const span = extent(lines.flatMap(({ y }) => y), false);
  const near = span ? Math.max(span[1] - span[0], 1e-12) * 1e-3 : 0;
  const same = (/** @type {import('../learn/types.js').Line} */ a, /** @type {import('../learn/types.js').Line} */ b) => a.y.length === b.y.length
    && a.y.every((value, i) => a.x[i] === b.x[i] && (value === null || b.y[i] === null ? value === b.y[i] : Math.abs(value - Number(b.y[i])) <= near));
  return lines.map((line, i) => lines.slice(0, i).findIndex((other) => same(other, line)));
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
