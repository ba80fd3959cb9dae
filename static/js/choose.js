/**
 * The page's own first choice of a head and a pair: the strongest link between two different words that
 * neither position nor a popular key explains.
 */

/** @typedef {import('./types.js').Token} Token */
/** @typedef {{query: number, key: number, score: number}} Link */

/** @param {Token} token */
const isWord = (token) => !token.special && /[\p{L}\p{N}]/u.test(token.text);

/**
 * @param {Token[]} tokens
 * @param {number} query
 * @param {number} key
 * @returns {boolean} whether a link between the two says something about the text
 */
export function telling(tokens, query, key) {
  const [a, b] = [tokens[query], tokens[key]];
  return key > 0 && Math.abs(query - key) > 1 && isWord(a) && isWord(b)
    && !a.words.some((word) => b.words.includes(word))
    && a.text.trim().toLowerCase() !== b.text.trim().toLowerCase();
}

/**
 * Which cells of a picture of the attention may be chosen. In a pooled picture a cell stands for a block of
 * pairs, and only its place can be judged.
 *
 * @param {Token[]} tokens
 * @param {number} size rows and columns of the picture
 * @returns {Uint8Array} size × size, 1 where the cell may be chosen
 */
export function choosable(tokens, size) {
  const exact = tokens.length === size;
  return Uint8Array.from({ length: size * size }, (_, i) => {
    const [query, key] = [Math.floor(i / size), i % size];
    return Number(exact ? telling(tokens, query, key) : key > 0 && query !== key);
  });
}

/**
 * Weight, less what the other queries give to the same key or what the head gives at the same offset,
 * and less for near pairs.
 *
 * @param {ArrayLike<number>} grid one head's picture, row by row, from `offset` on
 * @param {number} offset
 * @param {number} size
 * @param {Uint8Array} allowed
 * @param {boolean} [far] whether near pairs count for less
 * @returns {Link | null}
 */
export function strongest(grid, offset, size, allowed, far = true) {
  const columns = new Float64Array(size);
  const diagonals = new Float64Array(2 * size);
  for (let q = 0; q < size; q += 1) {
    for (let k = 0; k < size; k += 1) {
      const w = grid[offset + q * size + k];
      columns[k] += w;
      diagonals[k - q + size] += w;
    }
  }
  /** @type {Link | null} */
  let best = null;
  for (let q = 0; q < size; q += 1) {
    for (let k = 0; k < size; k += 1) {
      if (!allowed[q * size + k]) continue;
      const w = grid[offset + q * size + k];
      const distance = Math.abs(q - k);
      const popular = (columns[k] - w) / Math.max(1, size - 1);
      const positional = (diagonals[k - q + size] - w) / Math.max(1, size - distance - 1);
      const score = (w - Math.max(popular, positional)) * (far ? 1 - 1 / distance : 1);
      if (!best || score > best.score) best = { query: q, key: k, score };
    }
  }
  return best;
}

/**
 * Heads to begin with, most promising first. Thumbnails of a long text are pooled, which hides near links and
 * blurs far ones: the best heads by either reading are named, and their exact matrices decide.
 *
 * @param {import('./types.js').Tensor} overview uint8 [L, H, n, n]
 * @param {Token[]} tokens
 * @returns {import('./types.js').HeadRef[]}
 */
export function promising(overview, tokens) {
  const [layers, heads, size] = overview.shape;
  const exact = tokens.length === size;
  const allowed = choosable(tokens, size);
  const ranked = (/** @type {boolean} */ far) => Array.from({ length: layers * heads }, (_, index) => ({
    index, score: strongest(overview.data, index * size * size, size, allowed, far)?.score ?? -1,
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
 * @param {Token[]} tokens when empty, no pair is preferred for what it tells
 * @returns {{query: number, key: number}} the heaviest telling pair, or the heaviest of all where none tells
 */
export function heaviest(tile, row0, col0, tokens) {
  const [rows, cols] = tile.shape;
  let best = { query: row0, key: col0, weight: -1, tells: false };
  for (let r = 0; r < rows; r += 1) {
    for (let c = 0; c < cols; c += 1) {
      const weight = tile.data[r * cols + c];
      const tells = tokens.length > 0 && telling(tokens, row0 + r, col0 + c);
      if ((tells && !best.tells) || (tells === best.tells && weight > best.weight)) {
        best = { query: row0 + r, key: col0 + c, weight, tells };
      }
    }
  }
  return { query: best.query, key: best.key };
}
