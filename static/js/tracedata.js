/** One trace's pictures and numbers, fetched when needed and kept. */
import { covered, prefixOf } from './cells.js';
import { choosable, heaviest, promising, strongest } from './choose.js';

/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Range} Range */
/** @typedef {import('./types.js').HeadRef} HeadRef */
/** @typedef {{rows: Range, cols: Range} | null} Zoom */
/** @typedef {{text: string, target: string, sound: import('./types.js').Sound | null}} Said */

/** Thumbnails of texts up to this are exact, so that the page's first choice is too; those of longer ones are pooled smaller. */
const EXACT = 48;
const POOLED = 32;
/** Attention cells that the server may reduce in one request for thumbnails. */
const CELLS_AT_ONCE = 2e7;
const KEPT = 40;
/** Cells on a side of the small drawing of the mask. */
export const MINIATURE = 64;
/** A link of this score is worth showing first without looking at further heads. */
const ENOUGH = 0.4;

/** One trace, seen at one of its groups: the encoder's, the decoder's or the cross-attention's sites. */
export class TraceData {
  /**
   * @param {import('./api.js').Trace} trace
   * @param {string} title the model's name for readers
   * @param {string | null} [group] stack and kind; null or unknown: where the model's two texts meet, else its only one
   * @param {Map<string, Promise<any>>} [kept]
   */
  constructor(trace, title, group = null, kept = new Map()) {
    this.trace = trace;
    this.title = title;
    const { answer } = trace;
    this.answer = answer;
    const groupOf = (/** @type {import('./types.js').Site} */ site) => `${site.stack}.${site.kind}`;
    this.groups = [...new Set(answer.sites.map(groupOf))];
    this.group = group !== null && this.groups.includes(group) ? group : this.groups[this.groups.length - 1];
    this.prefix = prefixOf(this.group, this.groups.length > 1);
    this.sites = answer.sites.filter((site) => groupOf(site) === this.group);
    this.layers = this.sites.length;
    this.heads = Math.max(...this.sites.map((site) => site.heads));
    const [{ query_tokens: rows, key_tokens: cols }] = this.sites;
    /** @type {import('./types.js').Axes} */
    this.axes = { queries: answer[rows] ?? [], keys: answer[cols] ?? [], same: rows === cols };
    this.kept = kept;
    /** @type {Promise<import('./types.js').Tensor> | null} thumbnails that were asked for ahead */
    this.begun = null;
  }

  /** @param {string} group @returns {TraceData} the same trace at another of its groups */
  at(group) {
    return new TraceData(this.trace, this.title, group, this.kept);
  }

  /** @returns {boolean} whether the model has an encoder beside its decoder */
  get paired() {
    return this.answer.source_tokens !== null;
  }

  /** @returns {boolean} whether the keys are times in a sound */
  get heard() {
    return this.axes.keys[0]?.id === -1;
  }

  /** @param {import('./types.js').Sound | null} sound @returns {number} how many of the keys hold sound, not the silence behind it */
  sounding(sound) {
    const { keys } = this.axes;
    const step = Number.parseFloat(keys[1]?.text ?? '');
    return sound?.seconds && step > 0 ? Math.min(keys.length, Math.max(2, Math.ceil(sound.seconds / step))) : keys.length;
  }

  /**
   * A sound that is shorter than what the encoder reads is shown without the silence behind it.
   * @param {import('./types.js').Sound | null} sound
   * @returns {Zoom}
   */
  firstZoom(sound) {
    const { queries, keys, same } = this.axes;
    const frames = this.heard ? this.sounding(sound) : keys.length;
    if (frames >= keys.length) return null;
    return { rows: [0, same ? frames : queries.length], cols: [0, frames] };
  }

  /**
   * @param {Said} said
   * @returns {import('./ui/strips.js').Shown & {length: number}} the shown tokens with the texts that they were cut from
   */
  words({ text, target, sound }) {
    const { axes, heard } = this;
    const [{ query_tokens: rows, key_tokens: cols }] = this.sites;
    const textOf = (/** @type {string} */ name) => (this.paired && name === 'tokens' ? target : text);
    const length = axes.queries.length + (axes.same || heard ? 0 : axes.keys.length);
    const frames = this.sounding(sound);
    return { axes, heard, queryText: textOf(rows), keyText: textOf(cols), length, frames, peaks: frames < axes.keys.length ? sound?.peaks ?? [] : [] };
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
   * Asks at once for what the first picture needs whatever head it shows: the first thumbnails and the mask.
   * @param {Zoom} zoom
   * @param {number | null} most cells on a side that the picture can show; null: not known yet
   * @param {AbortSignal} signal
   */
  ahead(zoom, most, signal) {
    const later = () => { /* asked for again, and reported, where it is shown */ };
    this.begun = this.#thumbnails(0, signal);
    this.begun.catch(later);
    const [{ mask }] = this.sites;
    if (most === null || this.sites.some((site) => site.mask_by_head || site.mask !== mask)) return;
    const first = { layer: 0, head: 0 };
    this.mask(first, zoom, most, signal).catch(later);
    this.mask(first, null, MINIATURE, signal).catch(later);
  }

  /**
   * Thumbnails of all heads, in as many pieces as keep each one quick.
   * @param {AbortSignal} signal
   * @param {(tensor: import('./types.js').Tensor, firstLayer: number) => void} onPart
   */
  async overview(signal, onPart) {
    const { begun } = this;
    this.begun = null;
    for (let first = 0; first < this.layers; first = this.#lastOf(first)) {
      onPart(await (first === 0 && begun ? begun : this.#thumbnails(first, signal)), first);
    }
  }

  /** @param {number} first the first of its layers @param {AbortSignal} signal */
  async #thumbnails(first, signal) {
    const { queries, keys } = this.sites[0];
    const size = Math.max(queries, keys) <= EXACT ? EXACT : POOLED;
    const last = this.#lastOf(first);
    const part = last - first < this.layers ? `&layers=${this.sites[first].layer}:${this.sites[last - 1].layer + 1}` : '';
    return (await this.trace.npy(`overview/${this.group}?size=${size}${part}`, signal)).tensor;
  }

  /** @param {number} first @returns {number} where the piece of thumbnails from there on ends: in a range of the model's layers */
  #lastOf(first) {
    const { queries, keys } = this.sites[0];
    const most = first + Math.max(1, Math.floor(CELLS_AT_ONCE / (this.heads * queries * keys)));
    let last = first + 1;
    while (last < Math.min(most, this.layers) && this.sites[last].layer === this.sites[last - 1].layer + 1) last += 1;
    return last;
  }

  /**
   * @param {HeadRef} ref
   * @param {Zoom} zoom
   * @param {number} most cells on a side that the picture can show
   * @param {string} [stage]
   */
  path({ layer, head }, zoom, most, stage = 'weights') {
    const parts = zoom ? `&rows=${zoom.rows.join(':')}&cols=${zoom.cols.join(':')}` : '';
    const { queries, keys, site } = this.sites[layer];
    // What is whole at several sizes is asked for once.
    const size = Math.min(most, Math.max(queries, keys));
    return `attention/${site}/${head}?stage=${stage}&max=${size}${parts}`;
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
    const who = site.mask_by_head ? `${site.site}/${ref.head}` : `${this.group} ${site.mask}`;
    const path = this.path(ref, zoom, most, 'mask');
    return this.#keep(`mask ${who} ${path.split('?')[1]}`, async () => (await this.trace.npy(path, signal)).tensor);
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
  async figures(signal) {
    const answer = await this.#keep('heads', () => this.trace.json('heads', signal));
    const own = new Set(this.sites.map(({ site }) => site));
    return { ...answer, sites: answer.sites.filter((/** @type {{site: string}} */ { site }) => own.has(site)) };
  }

  /** @param {Matrix} matrix */
  #strongest({ data, rows, cols }) {
    return strongest(data, 0, [rows, cols], choosable(this.axes, rows, cols), this.axes);
  }

  /**
   * The head to begin with: the first promising one that has a strong link, else the one that has the strongest.
   * @param {import('./types.js').Tensor} overview
   * @param {number} most
   * @param {AbortSignal} signal
   * @returns {Promise<HeadRef>}
   */
  async chooseHead(overview, most, signal) {
    const refs = promising(overview, this.axes);
    if (refs.length === 1) return refs[0];
    let best = { ref: refs[0], score: -1 };
    const coming = refs.map((ref) => this.head(ref, null, most, signal));
    for (const matrix of coming) matrix.catch(() => { /* awaited below, unless an earlier one is enough */ });
    for (const [i, ref] of refs.entries()) {
      if (best.score >= ENOUGH) break;
      const matrix = await coming[i];
      const link = matrix.exact ? this.#strongest(matrix) : null;
      if (link && link.score > best.score) best = { ref, score: link.score };
    }
    return best.ref;
  }

  /**
   * The pair to begin with in a head.
   * @param {HeadRef} ref
   * @param {Matrix} matrix
   * @param {AbortSignal} signal
   * @param {boolean} [published] a publication names the head: its heaviest link is shown, between equal texts too
   * @returns {Promise<{query: number, key: number}>}
   */
  async choosePair(ref, matrix, signal, published = false) {
    const link = this.#strongest(matrix);
    if (matrix.exact) {
      if (link && !published) return { query: link.query, key: link.key };
      const tile = { data: matrix.data, shape: [matrix.rows, matrix.cols], dtype: '<f4' };
      return heaviest(tile, matrix.rowRange[0], matrix.colRange[0], this.axes, published);
    }
    // a pooled cell may be bright for a pair that tells nothing: its queries are looked at over all keys
    const { queries, keys } = this.sites[ref.layer];
    return this.heaviestIn(ref, covered(queries, matrix.rows, link?.query ?? 0), [0, keys], signal, this.axes);
  }

  /**
   * @param {HeadRef} ref
   * @param {Range} rows
   * @param {Range} cols
   * @param {AbortSignal} signal
   * @param {import('./types.js').Axes | null} [axes] given, a pair of different words goes before a heavier one
   * @returns {Promise<{query: number, key: number}>} the pair that stands for so many cells
   */
  async heaviestIn(ref, rows, cols, signal, axes = null) {
    if (rows[1] - rows[0] === 1 && cols[1] - cols[0] === 1) return { query: rows[0], key: cols[0] };
    const most = Math.max(rows[1] - rows[0], cols[1] - cols[0]);
    const { tensor } = await this.trace.npy(this.path(ref, { rows, cols }, most), signal);
    return heaviest(tensor, rows[0], cols[0], axes);
  }
}
