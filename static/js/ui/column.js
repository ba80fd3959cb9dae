/** One run on the page: its controls, overview, chosen head and pair. There are two, A and B. */
import { drawMask } from '../figures/cells.js';
import { visible } from '../spans.js';
import { find, sharp } from './dom.js';
import { headExports, overviewExports } from './exports.js';
import { exportMenu } from './exportmenu.js';
import { headName } from './format.js';
import { GroupSwitch } from './groupswitch.js';
import { HeadMap } from './headmap.js';
import { drawLegend } from './legend.js';
import { LinesView } from './linesview.js';
import { Links } from './links.js';
import { MaskControl } from './maskcontrol.js';
import { MatrixView } from './matrixview.js';
import { ModelPicker } from './modelpicker.js';
import { PairPanel } from './pairpanel.js';
import { showReadout } from './readout.js';
import { Strips } from './strips.js';
import { palette } from './theme.js';
import { ZoomBar } from './zoombar.js';

/** @typedef {import('../types.js').HeadRef} HeadRef */
/** @typedef {import('../types.js').Range} Range */
/** @typedef {import('../types.js').State} State */
/** @typedef {{query: number, key: number}} Pair */
/**
 * @typedef {{onModel: (id: string) => void, onRetry: (id: string) => void,
 *   onSetting: (change: Partial<import('../types.js').Setting>) => void, onHead: (ref: HeadRef) => void,
 *   onGroup: (group: string) => void, onPair: (rows: Range, cols: Range) => void, onMove: (pair: Pair) => void, onZoom: (zoom: State['zoom']) => void,
 *   onTab: (tab: import('../types.js').Tab) => void, onColour: (transfer: import('../types.js').Transfer) => void}} Handlers
 */

/** The strongest shade of a token, as a part of the way to the full colour; the style sheet has the same. */
const SHADE = 0.62;
const HINT = 'Click a token to pick the query; Shift-click one to pick the key.';
const BAND = 'Click the band to pick the query; Shift-click it to pick the key.';
const TOUCH = { query: 'Tap a token to pick the query.', key: 'Now tap the token that it looks at: the key.' };

export class Column {
  /** @param {'a' | 'b'} name @param {Handlers} on */
  constructor(name, on) {
    this.name = name;
    this.on = on;
    const suffix = name === 'a' ? '' : '-b';
    const template = /** @type {HTMLTemplateElement} */ (find(document, '#column'));
    this.element = find(/** @type {DocumentFragment} */ (template.content.cloneNode(true)), '.column');
    const part = (/** @type {string} */ selector) => find(this.element, selector);
    this.part = part;
    this.element.dataset.column = name;
    part('.badge').textContent = name.toUpperCase();
    this.picker = new ModelPicker(suffix, { onChoose: on.onModel, onRetry: on.onRetry });
    this.masks = new MaskControl(suffix, on.onSetting);
    this.group = new GroupSwitch(part('.group'), on.onGroup);
    this.map = new HeadMap({ box: part('.overview'), figures: part('.head-figures') },
      { testid: `head${suffix}`, onPick: on.onHead });
    this.links = new Links({ title: part('.links-title'), list: part('.links') }, on.onHead);
    this.matrix = new MatrixView(part('.picture.matrix'), {
      onPick: on.onPair, onMove: (query, key) => on.onMove({ query, key }), onZoom: (rows, cols) => on.onZoom({ rows, cols }),
      onPoint: (query) => this.#point(query),
    });
    this.lines = new LinesView(part('.picture.lines'), (change) => on.onMove({ ...this.pair, ...change }));
    this.strip = this.#strip(part('.strip'), 'Tokens of the text');
    this.reading = this.#strip(part('.reading'), 'The text, shaded');
    this.zoom = new ZoomBar(part('.zoom'), on.onZoom);
    this.panel = new PairPanel(part('.pair'), (key) => on.onMove({ ...this.pair, key }));
    this.#tabs();
    part('[data-export="overview"]').append(exportMenu('overview', () => overviewExports(this)));
    part('[data-export="picture"]').append(exportMenu('picture', () => headExports(this)));
    for (const node of this.element.querySelectorAll('[data-testid]')) {
      node.setAttribute('data-testid', node.getAttribute('data-testid') + suffix);
    }
    /** @type {import('../tracedata.js').TraceData | null} */
    this.data = null;
    /** @type {HeadRef} */
    this.ref = { layer: 0, head: 0 };
    /** @type {Pair} */
    this.pair = { query: 0, key: 0 };
    /** @type {{queries: string[], keys: string[]}} */
    this.labels = { queries: [], keys: [] };
    /** @type {ArrayLike<number>} */
    this.row = [];
    /** @type {import('./matrixview.js').Content | null} */
    this.content = null;
    /** @type {import('../types.js').Transfer} */
    this.transfer = 'power';
    this.pointed = -1;
    /** @type {import('./strips.js').Shown | null} the text, until its own tab has been opened */
    this.unread = null;
    this.legend = '';
  }

  /** @param {HTMLElement} root @param {string} label */
  #strip(root, label) {
    return new Strips(root, {
      label, onQuery: (query) => this.on.onMove({ ...this.pair, query }), onKey: (key) => this.on.onMove({ ...this.pair, key }),
      onPoint: (index) => this.#point(index), onTurn: (next) => { this.part('.hint').textContent = TOUCH[next]; },
    });
  }

  #tabs() {
    const tabs = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll('[data-tab]')]);
    for (const [i, tab] of tabs.entries()) {
      tab.addEventListener('click', () => this.on.onTab(/** @type {any} */ (tab.dataset.tab)));
      tab.addEventListener('keydown', (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        const next = tabs[(i + step + tabs.length) % tabs.length];
        next.focus();
        next.click();
      });
    }
    const select = /** @type {HTMLSelectElement} */ (this.part('.scale-choice select'));
    select.addEventListener('change', () => this.on.onColour(/** @type {any} */ (select.value)));
  }

  /**
   * A new run has come, or another of its groups is looked at: what is known without another request.
   * @param {import('../tracedata.js').TraceData} data
   * @param {import('../tracedata.js').Said} said
   */
  begin(data, said) {
    const { axes } = data;
    this.data = data;
    this.group.show(data.groups, data.group);
    this.labels = { queries: axes.queries.map(label), keys: axes.keys.map(label) };
    this.map.begin(data.layers, data.heads, { prefix: data.prefix, aspect: axes.keys.length / axes.queries.length });
    this.part('.overview').dataset.figures = 'awaited';
    const shown = data.words(said);
    this.strip.render(shown);
    this.unread = shown;
    // a short text is set large enough to fill its place, and to be read across a room
    this.part('.reading').style.setProperty('--size', `${14 / Math.sqrt(shown.length)}rem`);
    this.part('.hint').textContent = !axes.same ? '' : data.heard ? BAND : matchMedia('(any-pointer: coarse)').matches ? TOUCH.query : HINT;
    showReadout(this.part('.readout'), data.answer.readout, data.answer.tokens);
  }

  /** Cells on a side that the picture has room for. */
  room() {
    return Math.max(64, Math.min(512, Math.floor(this.part('.main').clientWidth - 150)));
  }

  /**
   * @param {HeadRef} ref
   * @param {import('../types.js').Matrix} matrix
   * @param {import('../types.js').Tensor} mask
   * @param {Pair | null} pair null: the pair has no counterpart here
   * @param {State} state
   */
  showHead(ref, matrix, mask, pair, state) {
    const { data } = this;
    if (!data) return;
    this.ref = ref;
    this.transfer = state.colour;
    this.pair = pair ?? { query: -1, key: -1 };
    this.content = { matrix, mask, labels: this.labels, axes: data.axes, transfer: state.colour };
    this.map.choose(ref);
    this.#titles(matrix);
    this.showTab(state.tab);
    this.zoom.show(matrix, { rows: data.axes.queries.length, cols: data.axes.keys.length }, this.pair);
    this.legends();
  }

  /** @param {import('../types.js').Matrix} matrix */
  #titles(matrix) {
    const data = /** @type {import('../tracedata.js').TraceData} */ (this.data);
    const site = data.sites[this.ref.layer];
    this.part('.picture-title').textContent = `${headName(this.ref, data.prefix)} · attention pattern`;
    const pooled = matrix.exact ? ''
      : ` · pooled: ${pooledWords(matrix)}, each the largest weight inside it`;
    const [who, whom] = data.axes.same ? ['', ''] : [' of the target', ' of the source'];
    this.part('.picture-caption').textContent = `rows: queries${who} (who looks) · columns: keys${whom} (looked at) · each row sums to 1 · mask: ${site.kind === 'cross' && site.mask === 'bidirectional' ? 'none' : site.mask}${pooled}`;
  }

  /** @param {import('../types.js').Tab} tab */
  showTab(tab) {
    for (const node of this.element.querySelectorAll('[data-tab]')) {
      const chosen = node.getAttribute('data-tab') === tab;
      node.setAttribute('aria-selected', String(chosen));
      node.setAttribute('tabindex', chosen ? '0' : '-1');
    }
    this.tab = tab;
    this.part('.picture.matrix').hidden = tab !== 'matrix';
    this.part('.picture.lines').hidden = tab !== 'lines';
    this.part('.picture.reading').hidden = tab !== 'text';
    this.part('.strip').hidden = tab === 'text';
    this.part('.main').dataset.showing = tab;
    if (tab === 'text' && this.unread) {
      this.reading.render(this.unread);
      this.unread = null;
    }
    if (!this.content) return;
    if (tab === 'matrix') this.matrix.show(this.content, this.pair);
    if (tab === 'lines') this.lines.show(this.content, this.pair, this.row);
  }

  /**
   * @param {ArrayLike<number>} row
   * @param {import('../types.js').PairAnswer} pair
   * @param {import('../types.js').LinksAnswer | null} links
   */
  showPair(row, pair, links) {
    const [query, key] = [this.labels.queries[this.pair.query], this.labels.keys[this.pair.key]];
    const prefix = this.data?.prefix ?? '';
    this.row = row;
    this.shade(row, this.pair.query);
    this.strip.reveal(this.pair.query);
    this.reading.reveal(this.pair.query);
    this.panel.show(pair, { query, key, head: headName(this.ref, prefix) });
    this.panel.ranking(row, this.labels.keys, query, this.pair.key);
    if (links) this.links.show(links, { query, key, prefix }, this.ref);
    if (this.tab === 'lines' && this.content) this.lines.show(this.content, this.pair, row);
  }

  /** @param {string} why */
  showNoPair(why) {
    this.row = [];
    this.shade([], -1);
    this.panel.explain(why);
  }

  /** @param {ArrayLike<number>} row @param {number} query */
  shade(row, query) {
    const pick = { query, key: this.pair.key };
    this.strip.shade(row, this.transfer, pick);
    this.reading.shade(row, this.transfer, pick);
  }

  /**
   * Shades by the token under the pointer, or by the picked one again.
   * @param {number | null} index
   */
  async #point(index) {
    this.pointed = index ?? -1;
    const { data, content } = this;
    if (!data || !content) return;
    if (index === null) return this.shade(this.row, this.pair.query);
    const held = data.rowOf(content.matrix, index);
    if (held) return this.shade(held, index);
    try {
      const row = await data.row(this.ref, index);
      if (this.pointed === index) this.shade(row, index);
    } catch { /* hovering asks for nothing that a click would not ask for and report */ }
  }

  /** @param {import('../types.js').Tensor} mask @param {string} words */
  showMask(mask, words) {
    const canvas = /** @type {HTMLCanvasElement} */ (this.part('.mask-mini'));
    drawMask(sharp(canvas, 64, 64), mask, { size: 64, palette: palette() });
    canvas.setAttribute('aria-label', `mask: ${words}`);
    canvas.title = `mask: ${words}`;
    this.mini = { mask, words };
  }

  legends() {
    const drawn = [this.transfer, this.tab, document.documentElement.dataset.theme].join();
    if (drawn === this.legend) return;
    this.legend = drawn;
    drawLegend(this.part('.over .legend-slot'), this.transfer);
    drawLegend(this.part('.main .legend-slot'), this.transfer, this.tab === 'text' ? { to: 'shade', strength: SHADE } : {});
    /** @type {HTMLSelectElement} */ (this.part('.scale-choice select')).value = this.transfer;
  }

  /** The size or the theme has changed. */
  redraw() {
    if (!this.data || this.element.hidden) return;
    this.map.paint(this.transfer);
    if (this.content) this.showTab(this.tab ?? 'matrix');
    if (this.mini) this.showMask(this.mini.mask, this.mini.words);
    this.legends();
  }
}

/** @param {import('../types.js').Token} token @returns {string} a time in a sound as it is, a piece of text with its spaces seen */
const label = ({ id, text }) => (id === -1 ? text : visible(text));

/** @param {import('../types.js').Matrix} matrix @returns {string} how many tokens share how many cells */
function pooledWords({ rowRange, colRange, rows, cols }) {
  const [queries, keys] = [rowRange[1] - rowRange[0], colRange[1] - colRange[0]];
  if (queries === keys) return `${queries} tokens drawn as ${rows} cells`;
  return `${queries} × ${keys} pairs drawn as ${rows} × ${cols} cells`;
}
