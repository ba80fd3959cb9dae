/** One trace's pictures and numbers, fetched when needed and kept. */
import { choosable, heaviest, promising, strongest } from './choose.js';
import { covered } from './figures/axis.js';

/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Range} Range */
/** @typedef {import('./types.js').HeadRef} HeadRef */
/** @typedef {{rows: Range, cols: Range} | null} Zoom */

/** Attention cells that the server may reduce in one request for thumbnails. */
const CELLS_AT_ONCE = 2e7;
const KEPT = 40;
/** A link of this score is worth showing first without looking at further heads. */
const ENOUGH = 0.4;

export class TraceData {
  /** @param {import('./api.js').Trace} trace @param {string} title the model's name for readers */
  constructor(trace, title) {
    this.trace = trace;
    this.title = title;
    const { answer } = trace;
    this.answer = answer;
    this.tokens = answer.tokens;
    this.group = `${answer.sites[0].stack}.${answer.sites[0].kind}`;
    this.sites = answer.sites.filter((site) => `${site.stack}.${site.kind}` === this.group);
    this.layers = this.sites.length;
    this.heads = Math.max(...this.sites.map((site) => site.heads));
    /** @type {Map<string, Promise<any>>} */
    this.kept = new Map();
  }

  /**
   * @template T
   * @param {string} name
   * @param {() => Promise<T>} fetchIt
   * @returns {Promise<T>}
   */
  #keep(name, fetchIt) {
    const known = this.kept.get(name);
    if (known) return known;
    const coming = fetchIt();
    this.kept.set(name, coming);
    coming.catch(() => this.kept.delete(name));
    if (this.kept.size > KEPT) this.kept.delete(/** @type {string} */ (this.kept.keys().next().value));
    return coming;
  }

  /** @param {HeadRef} ref */
  has({ layer, head }) {
    return layer < this.layers && head < this.sites[layer].heads;
  }

  /**
   * Thumbnails of all heads, in as many pieces as keep each one quick.
   * @param {AbortSignal} signal
   * @param {(tensor: import('./types.js').Tensor, firstLayer: number) => void} onPart
   */
  async overview(signal, onPart) {
    const cost = this.heads * this.answer.sizes.tokens ** 2;
    const stride = Math.max(1, Math.min(this.layers, Math.floor(CELLS_AT_ONCE / cost)));
    for (let first = 0; first < this.layers; first += stride) {
      const last = Math.min(this.layers, first + stride);
      const path = `overview/${this.group}?size=32${stride < this.layers ? `&layers=${first}:${last}` : ''}`;
      onPart((await this.trace.npy(path, signal)).tensor, first);
    }
  }

  /**
   * @param {HeadRef} ref
   * @param {Zoom} zoom
   * @param {number} most cells on a side that the picture can show
   * @param {string} [stage]
   */
  path({ layer, head }, zoom, most, stage = 'weights') {
    const parts = zoom ? `&rows=${zoom.rows.join(':')}&cols=${zoom.cols.join(':')}` : '';
    return `attention/${this.sites[layer].site}/${head}?stage=${stage}&max=${most}${parts}`;
  }

  /**
   * @param {HeadRef} ref
   * @param {Zoom} zoom
   * @param {number} most
   * @param {AbortSignal} signal
   * @returns {Promise<Matrix>}
   */
  head(ref, zoom, most, signal) {
    const path = this.path(ref, zoom, most);
    return this.#keep(path, async () => {
      const { tensor, pool } = await this.trace.npy(path, signal);
      const { queries, keys } = this.sites[ref.layer];
      return {
        data: tensor.data, rows: tensor.shape[0], cols: tensor.shape[1],
        rowRange: zoom?.rows ?? [0, queries], colRange: zoom?.cols ?? [0, keys], exact: pool === 'none',
      };
    });
  }

  /**
   * @param {HeadRef} ref
   * @param {Zoom} zoom
   * @param {number} most
   * @param {AbortSignal} signal
   * @returns {Promise<import('./types.js').Tensor>} uint8, 1 = open
   */
  mask(ref, zoom, most, signal) {
    const site = this.sites[ref.layer];
    const who = site.mask_by_head ? `${site.site}/${ref.head}` : site.mask;
    return this.#keep(`mask ${who} ${JSON.stringify(zoom)} ${most}`,
      async () => (await this.trace.npy(this.path(ref, zoom, most, 'mask'), signal)).tensor);
  }

  /**
   * One query's weights on every key, exact.
   * @param {HeadRef} ref
   * @param {number} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<ArrayLike<number>>}
   */
  row(ref, query, signal) {
    const { keys, site } = this.sites[ref.layer];
    const path = `attention/${site}/${ref.head}?stage=weights&rows=${query}:${query + 1}&cols=0:${keys}&max=${Math.max(keys, 1)}`;
    return this.#keep(path, async () => (await this.trace.npy(path, signal)).tensor.data);
  }

  /**
   * @param {Matrix} matrix
   * @param {number} query
   * @returns {ArrayLike<number> | null} the row where the picture holds it whole and exact
   */
  rowOf(matrix, query) {
    const whole = matrix.exact && matrix.colRange[0] === 0 && matrix.cols === this.sites[0].keys;
    const row = query - matrix.rowRange[0];
    if (!whole || row < 0 || row >= matrix.rows) return null;
    return Array.prototype.slice.call(matrix.data, row * matrix.cols, (row + 1) * matrix.cols);
  }

  /** @param {HeadRef} ref @param {number} query @param {number} key @param {AbortSignal} signal @returns {Promise<import('./types.js').PairAnswer>} */
  pair({ layer, head }, query, key, signal) {
    const path = `pair/${this.sites[layer].site}/${head}?query=${query}&key=${key}`;
    return this.#keep(path, () => this.trace.json(path, signal));
  }

  /** @param {number} query @param {number} key @param {AbortSignal} signal @returns {Promise<import('./types.js').LinksAnswer>} */
  links(query, key, signal) {
    const path = `links/${this.group}?query=${query}&key=${key}`;
    return this.#keep(path, () => this.trace.json(path, signal));
  }

  /** @param {AbortSignal} signal @returns {Promise<import('./types.js').HeadsAnswer>} */
  figures(signal) {
    return this.#keep('heads', () => this.trace.json('heads', signal));
  }

  /**
   * The head to begin with: the first promising one that has a strong link, else the one that has the strongest.
   * @param {import('./types.js').Tensor} overview
   * @param {number} most
   * @param {AbortSignal} signal
   * @returns {Promise<HeadRef>}
   */
  async chooseHead(overview, most, signal) {
    const refs = promising(overview, this.tokens);
    let best = { ref: refs[0], score: -1 };
    for (const ref of refs) {
      if (best.score >= ENOUGH || refs.length === 1) break;
      const matrix = await this.head(ref, null, most, signal);
      const link = matrix.exact ? strongest(matrix.data, 0, matrix.rows, choosable(this.tokens, matrix.rows)) : null;
      if (link && link.score > best.score) best = { ref, score: link.score };
    }
    return best.ref;
  }

  /**
   * The pair to begin with in a head.
   * @param {HeadRef} ref
   * @param {Matrix} matrix
   * @param {AbortSignal} signal
   * @returns {Promise<{query: number, key: number}>}
   */
  async choosePair(ref, matrix, signal) {
    const square = matrix.rows === matrix.cols;
    const link = square ? strongest(matrix.data, 0, matrix.rows, choosable(this.tokens, matrix.rows)) : null;
    if (matrix.exact) {
      if (link) return { query: link.query, key: link.key };
      return heaviest({ data: matrix.data, shape: [matrix.rows, matrix.cols], dtype: '<f4' }, matrix.rowRange[0], matrix.colRange[0], this.tokens);
    }
    // a pooled cell may be bright for a pair that tells nothing: its queries are looked at over all keys
    const { queries, keys } = this.sites[ref.layer];
    return this.heaviestIn(ref, covered(queries, matrix.rows, link?.query ?? 0), [0, keys], signal, this.tokens);
  }

  /**
   * @param {HeadRef} ref
   * @param {Range} rows
   * @param {Range} cols
   * @param {AbortSignal} signal
   * @param {import('./types.js').Token[]} [tokens] given, a pair of different words goes before a heavier one
   * @returns {Promise<{query: number, key: number}>} the pair that stands for so many cells
   */
  async heaviestIn(ref, rows, cols, signal, tokens = []) {
    if (rows[1] - rows[0] === 1 && cols[1] - cols[0] === 1) return { query: rows[0], key: cols[0] };
    const most = Math.max(rows[1] - rows[0], cols[1] - cols[0]);
    const { tensor } = await this.trace.npy(this.path(ref, { rows, cols }, most), signal);
    return heaviest(tensor, rows[0], cols[0], tokens);
  }
}
