/**
 * The page's own first choice of a head and a pair: the strongest link between two different words that
 * neither position nor a popular key explains.
 */

/** @typedef {import('./types.js').Token} Token */
/** @typedef {import('./types.js').Axes} Axes */
/** @typedef {{query: number, key: number, score: number}} Link */

/** @type {WeakMap<Token, {word: boolean, plain: string}>} each token is looked at for many pairs, and read once */
const known = new WeakMap();

/** @param {Token} token @returns {{word: boolean, plain: string}} whether it holds a letter or digit, and its text without case and spaces */
function read(token) {
  const held = known.get(token);
  if (held) return held;
  const fresh = { word: !token.special && /[\p{L}\p{N}]/u.test(token.text), plain: token.text.trim().toLowerCase() };
  known.set(token, fresh);
  return fresh;
}

/**
 * @param {Axes} axes
 * @param {number} query
 * @param {number} key
 * @param {boolean} [alike] whether equal texts may be linked too, as the atoms of a reaction are
 * @returns {boolean} whether a link between the two says something about the text
 */
export function telling({ queries, keys, same }, query, key, alike = false) {
  const [a, b] = [queries[query], keys[key]];
  const [who, whom] = [read(a), read(b)];
  if (!who.word || !whom.word) return false;
  return !same || (key > 0 && Math.abs(query - key) > 1 && !a.words.some((word) => b.words.includes(word)) && (alike || who.plain !== whom.plain));
}

/**
 * Which cells of a picture of the attention may be chosen. In a pooled picture a cell stands for a block of
 * pairs, and only its place can be judged.
 *
 * @param {Axes} axes
 * @param {number} rows
 * @param {number} cols
 * @returns {Uint8Array} rows × cols, 1 where the cell may be chosen
 */
export function choosable(axes, rows, cols) {
  const exact = axes.queries.length === rows && axes.keys.length === cols;
  const placed = (/** @type {number} */ query, /** @type {number} */ key) => (axes.same ? key > 0 && query !== key
    : axes.queries.length !== rows || read(axes.queries[query]).word);
  const may = exact ? (/** @type {number} */ query, /** @type {number} */ key) => telling(axes, query, key) : placed;
  const allowed = new Uint8Array(rows * cols);
  for (let query = 0; query < rows; query += 1) {
    for (let key = 0; key < cols; key += 1) allowed[query * cols + key] = Number(may(query, key));
  }
  return allowed;
}

/**
 * Weight, less what the other queries give to the same key or, within one text, what the head gives at the same
 * offset, and less for near pairs.
 *
 * @param {ArrayLike<number>} grid one head's picture, row by row, from `offset` on
 * @param {number} offset
 * @param {[number, number]} shape
 * @param {Uint8Array} allowed
 * @param {{same: boolean, far?: boolean}} how far: near pairs count for less
 * @returns {Link | null}
 */
export function strongest(grid, offset, [rows, cols], allowed, { same, far = true }) {
  const columns = new Float64Array(cols);
  const diagonals = new Float64Array(rows + cols);
  for (let q = 0; q < rows; q += 1) {
    for (let k = 0; k < cols; k += 1) {
      const w = grid[offset + q * cols + k];
      columns[k] += w;
      diagonals[k - q + rows] += w;
    }
  }
  /** @type {Link | null} */
  let best = null;
  for (let q = 0; q < rows; q += 1) {
    for (let k = 0; k < cols; k += 1) {
      if (!allowed[q * cols + k]) continue;
      const w = grid[offset + q * cols + k];
      const distance = Math.abs(q - k);
      const popular = (columns[k] - w) / Math.max(1, rows - 1);
      const positional = same ? (diagonals[k - q + rows] - w) / Math.max(1, rows - distance - 1) : 0;
      const score = (w - Math.max(popular, positional)) * (same && far ? 1 - 1 / distance : 1);
      if (!best || score > best.score) best = { query: q, key: k, score };
    }
  }
  return best;
}

/**
 * Heads to begin with, most promising first. Thumbnails of a long text are pooled, which hides near links and
 * blurs far ones: the best heads by either reading are named, and their exact matrices decide.
 *
 * @param {import('./types.js').Tensor} overview uint8 [L, H, rows, cols]
 * @param {Axes} axes
 * @returns {import('./types.js').HeadRef[]}
 */
export function promising(overview, axes) {
  const [layers, heads, rows, cols] = overview.shape;
  const exact = axes.queries.length === rows && axes.keys.length === cols;
  const allowed = choosable(axes, rows, cols);
  const ranked = (/** @type {boolean} */ far) => Array.from({ length: layers * heads }, (_, index) => ({
    index, score: strongest(overview.data, index * rows * cols, [rows, cols], allowed, { same: axes.same, far })?.score ?? -1,
  })).sort((a, b) => b.score - a.score);
  const [far, near] = [ranked(true), exact ? [] : ranked(false)];
  const order = exact ? [far[0]] : [far[0], near[0], far[1], near[1]].filter((entry) => entry !== undefined);
  return [...new Set(order.map(({ index }) => index))]
    .map((index) => ({ layer: Math.floor(index / heads), head: index % heads }));
}

/**
 * @param {import('./types.js').Tensor} tile float32 [rows, cols], exact
 * @param {number} row0
 * @param {number} col0
 * @param {Axes | null} axes null: no pair is preferred for what it tells
 * @param {boolean} [alike] see `telling`
 * @returns {{query: number, key: number}} the heaviest telling pair, or the heaviest of all where none tells
 */
export function heaviest(tile, row0, col0, axes, alike = false) {
  const [rows, cols] = tile.shape;
  let best = { query: row0, key: col0, weight: -1, tells: false };
  for (let r = 0; r < rows; r += 1) {
    for (let c = 0; c < cols; c += 1) {
      const weight = tile.data[r * cols + c];
      const tells = axes !== null && telling(axes, row0 + r, col0 + c, alike);
      if ((tells && !best.tells) || (tells === best.tells && weight > best.weight)) {
        best = { query: row0 + r, key: col0 + c, weight, tells };
      }
    }
  }
  return { query: best.query, key: best.key };
}
