/** Puts a picture together: which head and pair, their numbers, the words, and the address. */
import { counted, headName } from '../ui/format.js';
import { changeSentence, lookSentence } from '../ui/sentence.js';
import { find, painted } from '../ui/dom.js';
import { plotlyNow } from '../ui/plotly.js';
import { MINIATURE } from '../tracedata.js';
import { nothing } from '../state.js';
import { alignedPair, counterpart } from './counterparts.js';

/** @typedef {import('../types.js').Range} Range */
/** @typedef {import('../types.js').HeadRef} HeadRef */
/** @typedef {import('../tracedata.js').TraceData} TraceData */
/** @typedef {{query: number, key: number}} Pair */
/** @typedef {'a' | 'b'} Name */

/** Milliseconds of rest after a picture before what only a reader needs is asked for. */
const PAUSE = 300;

export class Present {
  /** @param {import('./explorer.js').Explorer} page */
  constructor(page) {
    this.page = page;
  }

  /**
   * Asks for what a run's pictures will need, so that it comes while the page lays out their places.
   * @param {TraceData[]} data
   * @param {AbortSignal} signal
   */
  ahead(data, signal) {
    const { columns, sound, stage, state } = this.page;
    for (const [i, run] of data.entries()) {
      const column = i === 0 ? columns.a : columns.b;
      run.ahead(state.zoom ?? run.firstZoom(sound.held), stage.hidden ? null : column.room(), signal);
    }
  }

  /**
   * The first picture of a run. A head that is known is fetched beside the overview; else the overview chooses it.
   * @param {number} turn
   * @param {boolean} push
   * @param {TraceData[]} data
   */
  async first(turn, push, data) {
    const { page } = this;
    const { signal } = page.abort;
    if (page.pending.length) page.banner.show(page.pending.splice(0).join(' '));
    const { pick } = page.state;
    const known = pick.layer !== null && pick.head !== null;
    if (!known && page.state.zoom === null) page.state.zoom = data[0].firstZoom(page.sound.held);
    if (known) {
      const ref = { layer: Number(pick.layer), head: Number(pick.head) };
      data[0].head(ref, page.state.zoom, page.columns.a.room(), signal).catch(() => { /* asked for again below */ });
    }
    const names = /** @type {Name[]} */ (['a', 'b']).slice(0, data.length);
    const [overview] = names.map((name, i) => this.#overview(name, data[i], turn, signal));
    if (!known) {
      await overview;
      if (!page.activity.current(turn)) return;
      const published = this.#published(data[0]);
      const best = published ?? await data[0].chooseHead(page.columns.a.map.whole(), page.columns.a.room(), signal);
      if (!page.activity.current(turn)) return;
      page.state.pick = { ...nothing(), stack: data[0].group, ...best };
    }
    page.state.pick.stack = data[0].group;
    await this.#complete(turn, push, signal);
    await overview;
    // Figures need every weight of every head: whoever types on is not kept waiting by them.
    window.setTimeout(() => {
      if (signal.aborted) return;
      for (const [i, name] of names.entries()) void this.#figures(name, data[i], signal);
    }, PAUSE);
  }

  /** @param {TraceData} data @returns {HeadRef | null} the head that a publication names for A's model */
  #published(data) {
    const [layer, head] = this.page.models.get(this.page.state.a.model)?.opens ?? [-1, -1];
    return layer >= 0 && data.has({ layer, head }) ? { layer, head } : null;
  }

  /** @param {Name} name @param {TraceData} data @param {number} turn @param {AbortSignal} signal */
  async #overview(name, data, turn, signal) {
    const { page } = this;
    const { map } = page.columns[name];
    let layers = 0;
    map.paint(page.state.colour);
    try {
      await data.overview(signal, (tensor, firstLayer) => {
        if (!page.activity.current(turn)) return;
        map.add(tensor, firstLayer);
        layers += tensor.shape[0];
        if (layers < data.layers) page.activity.say(turn, `drawing layer ${layers} of ${data.layers}`, layers / data.layers);
      });
    } catch (error) {
      page.failures.show(turn, error, () => { void page.run(false); });
      throw error;
    }
  }

  /** @param {Name} name @param {TraceData} data @param {AbortSignal} signal */
  async #figures(name, data, signal) {
    try {
      const answer = await data.figures(signal);
      if (this.page.columns[name].data === data) this.page.columns[name].map.setFigures(answer);
    } catch { /* the picture stands without them; their line says that they are awaited */ }
  }

  /** Shows the state again: something was picked, nothing has to be run. @param {boolean} push */
  async show(push) {
    const { page } = this;
    if (!page.columns.a.data) return;
    const turn = page.activity.begin();
    try {
      await this.#complete(turn, push, page.abort.signal);
    } catch (error) {
      page.failures.show(turn, error, () => { void this.show(push); });
    }
  }

  /** @param {number} turn @param {boolean} push @param {AbortSignal} signal */
  async #complete(turn, push, signal) {
    const { page } = this;
    const { state, columns } = page;
    const data = /** @type {TraceData} */ (columns.a.data);
    const ref = { layer: Number(state.pick.layer), head: Number(state.pick.head) };
    if (state.pick.query !== null && state.pick.key !== null) this.#ahead(data, ref, { query: state.pick.query, key: state.pick.key }, signal);
    const [matrix, mask] = await this.#fetchHead('a', ref, state.zoom, signal);
    if (!page.activity.current(turn)) return;
    if (state.pick.query === null || state.pick.key === null) {
      const published = this.#published(data);
      const named = published?.layer === ref.layer && published.head === ref.head;
      const pair = await data.choosePair(ref, await data.head(ref, null, columns.a.room(), signal), signal, named);
      page.state.pick = { ...state.pick, stack: data.group, ...pair };
    }
    const pair = { query: Number(page.state.pick.query), key: Number(page.state.pick.key) };
    this.#ahead(data, ref, pair, signal);
    if (!data.rowOf(matrix, pair.query)) data.row(ref, pair.query, signal).catch(() => { /* asked for again below */ });
    columns.a.showHead(ref, matrix, mask, pair, page.state);
    const addressed = page.address.write(page.state, push);
    const row = await this.#numbers('a', ref, pair, signal);
    if (!page.activity.current(turn)) return;
    if (state.view === 'ab') await this.#other(turn, ref, pair, row[pair.key], signal);
    else this.#say(lookSentence({ row, labels: columns.a.labels, ...pair, head: headName(ref, data.prefix), heads: data.answer.sites.reduce((n, s) => n + s.heads, 0),
      counts: countsOf(data) }));
    await addressed;
    if (!plotlyNow()) await this.#plotly();
    await page.activity.ready(turn, page.view());
  }

  /**
   * Asks for a known pair's numbers beside the head's matrix instead of after it.
   * @param {TraceData} data
   * @param {HeadRef} ref
   * @param {Pair} pair
   * @param {AbortSignal} signal
   */
  #ahead(data, ref, pair, signal) {
    const later = () => { /* asked for again, and reported, where it is shown */ };
    data.pair(ref, pair.query, pair.key, signal).catch(later);
    data.links(pair.query, pair.key, signal).catch(later);
  }

  /** Plotly comes after the first picture is on the screen: reading it takes a second of this thread. */
  async #plotly() {
    const { page } = this;
    await painted();
    await page.bringPlotly();
    page.columns.a.redraw();
    page.columns.b.redraw();
  }

  /** @param {Name} name @param {HeadRef} ref @param {import('../types.js').State['zoom']} zoom @param {AbortSignal} signal */
  async #fetchHead(name, ref, zoom, signal) {
    const column = this.page.columns[name];
    const data = /** @type {TraceData} */ (column.data);
    const [matrix, mask, mini] = await Promise.all([
      data.head(ref, zoom, column.room(), signal), data.mask(ref, zoom, column.room(), signal), data.mask(ref, null, MINIATURE, signal)]);
    column.showMask(mini, data.sites[ref.layer].mask);
    return /** @type {const} */ ([matrix, mask]);
  }

  /**
   * @param {Name} name
   * @param {HeadRef} ref
   * @param {Pair} pair
   * @param {AbortSignal} signal
   */
  async #numbers(name, ref, pair, signal) {
    const column = this.page.columns[name];
    const data = /** @type {TraceData} */ (column.data);
    const held = column.content && data.rowOf(column.content.matrix, pair.query);
    const [row, numbers, links] = await Promise.all([
      held ?? data.row(ref, pair.query, signal), data.pair(ref, pair.query, pair.key, signal), data.links(pair.query, pair.key, signal)]);
    if (column.data === data && column.ref === ref) column.showPair(row, numbers, links);
    return row;
  }

  /**
   * B: the same head and pair, or their counterparts.
   * @param {number} turn
   * @param {HeadRef} refA
   * @param {Pair} pairA
   * @param {number} weightA
   * @param {AbortSignal} signal
   */
  async #other(turn, refA, pairA, weightA, signal) {
    const { page } = this;
    const { state, columns } = page;
    page.activity.say(turn, 'comparing A and B');
    const comparison = await /** @type {Promise<import('../types.js').CompareAnswer>} */ (page.comparing);
    if (!page.activity.current(turn)) return;
    const [dataA, data] = /** @type {TraceData[]} */ ([columns.a.data, columns.b.data]);
    if (page.comparison !== comparison || page.changes.group !== dataA.group) {
      page.comparison = comparison;
      page.changes.show(comparison, refA, dataA);
    }
    page.changes.mark(refA);
    const same = this.#sameTokens();
    const ref = counterpart(state, comparison, refA, dataA.sites[refA.layer].site, data);
    const pair = same ? pairA : alignedPair(comparison, pairA, 'a', 'b');
    const [matrix, mask] = await this.#fetchHead('b', ref, same ? state.zoom : null, signal);
    if (!page.activity.current(turn)) return;
    columns.b.showHead(ref, matrix, mask, pair, state);
    let weightB = null;
    if (pair) weightB = (await this.#numbers('b', ref, pair, signal))[pair.key];
    else columns.b.showNoPair(`A’s pair has no counterpart in B: ${data.title} has no token for one of the two.`);
    this.#say(changeSentence(comparison, {
      titles: [dataA.title, data.title],
      headA: headName(refA, dataA.prefix), headB: headName(ref, data.prefix), query: columns.a.labels.queries[pairA.query], key: columns.a.labels.keys[pairA.key], weightA, weightB,
    }));
  }

  /** Encoder–decoder models are compared on the same tokens only, whichever models they are. */
  #sameTokens() {
    const { state, columns } = this.page;
    return state.a.model === state.b.model || Boolean(columns.b.data?.paired);
  }

  /**
   * A pair was picked in one of the columns.
   * @param {Name} name
   * @param {Pair} pair
   */
  pickPair(name, pair) {
    const { page } = this;
    const same = name === 'a' || this.#sameTokens();
    const mapped = same ? pair : alignedPair(page.comparison, { query: Math.max(0, pair.query), key: Math.max(0, pair.key) }, 'b', 'a');
    if (!mapped) return;
    const known = { query: Math.max(0, mapped.query), key: Math.max(0, mapped.key) };
    page.change({ pick: { ...page.state.pick, ...known, auto: false } }, true);
  }

  /**
   * A cell was clicked; in a pooled picture it stands for many pairs, of which the heaviest is taken.
   * @param {Name} name
   * @param {Range} rows
   * @param {Range} cols
   */
  async pickCell(name, rows, cols) {
    const { page } = this;
    const column = page.columns[name];
    if (!column.data) return;
    const turn = page.activity.begin();
    try {
      const pair = await column.data.heaviestIn(column.ref, rows, cols, page.abort.signal);
      this.pickPair(name, pair);
    } catch (error) {
      page.failures.show(turn, error, () => { void this.pickCell(name, rows, cols); });
    }
  }

  /** @param {(Node | string)[]} words */
  #say(words) {
    find(document, '[data-testid="status"]').replaceChildren(...words);
  }
}

/** @param {TraceData} data @returns {string} how many tokens ran */
function countsOf({ answer: { tokens, source_tokens: source } }) {
  if (!source) return counted(tokens.length, 'token');
  return `${counted(source.length, source[0]?.id === -1 ? 'source frame' : 'source token')}, ${counted(tokens.length, 'target token')}`;
}
