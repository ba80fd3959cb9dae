/** What changed between A and B. */
import { drawMosaic } from '../figures/mosaic.js';
import { table } from '../colour.js';
import { el } from './dom.js';
import { exportMenu } from './exportmenu.js';
import { csv, save, savePng } from './download.js';
import { headName, layerOf, siteHead } from './format.js';
import { HeadGrid } from './headgrid.js';
import { drawLegend } from './legend.js';
import { rankedRow, settleStop, wireRanked } from './ranked.js';
import { palette } from './theme.js';

/** @typedef {import('../types.js').CompareAnswer} CompareAnswer */
/** @typedef {import('../types.js').HeadRef} HeadRef */

export class Changes {
  /**
   * @param {HTMLElement} root
   * @param {(a: HeadRef, b: HeadRef | null) => void} onPick
   */
  constructor(root, onPick) {
    this.root = root;
    this.onPick = onPick;
    this.grid = new HeadGrid({
      label: 'Change of each head: arrow keys choose', testid: 'change', onPick: (ref) => onPick(ref, null), onPoint: (ref) => this.#say(ref),
    });
    this.told = el('p', { class: 'soft told', 'aria-live': 'off' });
    /** @type {CompareAnswer | null} */
    this.answer = null;
    /** @type {HeadRef | null} */
    this.chosen = null;
    this.group = '';
    this.prefix = '';
    wireRanked(root);
    root.addEventListener('click', (event) => {
      const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('button[data-a]'));
      if (button) onPick(parse(button.dataset.a ?? ''), button.dataset.b ? parse(button.dataset.b) : null);
    });
  }

  /** Says that the comparison is on its way. */
  wait() {
    this.answer = null;
    this.root.replaceChildren(el('h2', {}, 'What changed'), el('p', { class: 'soft' }, 'A and B are being compared…'),
      el('progress', { 'aria-label': 'comparing' }));
  }

  /** @param {string} site */
  #shown(site) {
    return site.startsWith(`${this.group}.`);
  }

  /** @returns {NonNullable<CompareAnswer['sites']>} those of the shown group */
  #sites() {
    return (this.answer?.sites ?? []).filter(({ site }) => this.#shown(site));
  }

  /**
   * @param {CompareAnswer} answer
   * @param {HeadRef | null} chosen
   * @param {{group: string, prefix: string}} of the group of A that is shown
   */
  show(answer, chosen, { group, prefix }) {
    [this.answer, this.chosen, this.group, this.prefix] = [answer, chosen, group, prefix];
    const menu = exportMenu('changes', () => [
      { label: 'Numbers as CSV', run: () => this.#save() },
      ...(answer.sites ? [{ label: 'Map as PNG', run: () => savePng(this.grid.canvas, 'changes.png') }] : []),
    ]);
    const title = el('div', { class: 'card-title' }, el('h2', {}, 'What changed'), el('div', { class: 'tools' }, menu));
    this.root.replaceChildren(title, ...(answer.sites ? this.#sameHeads() : this.#otherHeads(answer)), ...this.#layers(answer));
    this.paint();
    this.mark(chosen);
  }

  #sameHeads() {
    const ranked = this.#ranked();
    const legend = el('div', { class: 'legend-slot' });
    drawLegend(legend, 'linear', { to: 'change', words: 'TV', width: 120 });
    return [
      el('p', { class: 'soft caption' }, 'total variation of each head’s rows, A against B: the share of attention that moved · layers ↓ heads →'),
      el('div', { class: 'change-map' }, this.grid.element), legend, this.told,
      el('h3', {}, 'Most changed heads'),
      el('ol', { class: 'ranked changed' }, ...ranked.map(({ ref, tv }) => row(headName(ref, this.prefix), tv, `${ref.layer}.${ref.head}`, ''))),
    ];
  }

  #ranked() {
    return this.#sites().flatMap((site) => site.heads.map((head, index) => ({ ref: { layer: site.layer, head: index }, tv: head.tv })))
      .sort((a, b) => b.tv - a.tv);
  }

  /** @param {CompareAnswer} answer */
  #otherHeads(answer) {
    const closest = (answer.closest ?? []).filter(({ a }) => this.#shown(a.site)).sort((a, b) => a.tv - b.tv);
    return [
      el('p', { class: 'soft caption' }, answer.sites_reason ?? ''),
      el('p', { class: 'overall' }, el('b', {}, answer.overall.tv.toFixed(2)), ' total variation between the mean maps of all heads, word by word'),
      el('h3', {}, 'Heads of A and the closest of B'),
      el('p', { class: 'soft caption' }, 'total variation between the two maps; small is alike'),
      el('ol', { class: 'ranked changed' }, ...closest.map(({ a, b, tv }) => row(
        `${headName({ layer: layerOf(a.site), head: a.head }, this.prefix)} ~ ${siteHead(b.site, b.head, this.prefix !== '')}`, tv, `${layerOf(a.site)}.${a.head}`, `${layerOf(b.site)}.${b.head}`))),
      ...(answer.unaligned.a.length || answer.unaligned.b.length ? [el('p', { class: 'soft caption' },
        `Left out, being no part of a word in both: ${answer.unaligned.a.length} tokens of A, ${answer.unaligned.b.length} of B.`)] : []),
    ];
  }

  /** @param {CompareAnswer} answer */
  #layers(answer) {
    if (!answer.layers) return answer.layers_reason ? [el('p', { class: 'soft caption' }, answer.layers_reason)] : [];
    const stack = this.group.split('.')[0];
    const layers = answer.layers.filter((layer) => layer.stack === stack);
    return [el('h3', {}, `${this.prefix ? `${stack === 'encoder' ? 'Encoder' : 'Decoder'} outputs` : 'Outputs'} by layer`), el('p', { class: 'soft caption' }, 'cosine between A and B, mean over tokens'),
      el('ol', { class: 'ranked by-layer' }, ...layers.map(({ layer, cosine }) => {
        const bar = el('span', { class: 'bar' });
        bar.style.width = `${100 * Math.max(0, cosine)}%`;
        return el('li', {}, el('span', { class: 'line' }, el('span', { class: 'name' }, `layer ${layer}`),
          el('span', { class: 'track' }, bar), el('span', { class: 'number' }, cosine.toFixed(3))));
      }))];
  }

  /** Draws the map again: the size or the theme has changed. */
  paint() {
    const sites = this.#sites();
    const box = this.grid.element.parentElement;
    if (!sites.length || !box?.clientWidth) return;
    const heads = Math.max(...sites.map((site) => site.heads.length));
    const cell = Math.max(12, Math.min(30, Math.floor((box.clientWidth - 26) / heads) - 1));
    const { context, cell: pixels, gap } = this.grid.layout(sites.length, heads, { width: cell, height: cell });
    const colours = palette();
    const data = new Uint8Array(sites.length * heads);
    sites.forEach((site, l) => site.heads.forEach((head, h) => { data[l * heads + h] = Math.round(255 * head.tv); }));
    context.fillStyle = colours.line;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    drawMosaic(context, { data, shape: [sites.length, heads, 1, 1], dtype: '|u1' },
      { cell: pixels, gap, colours: table(colours.panel, colours.change, 'linear') });
    this.grid.mark(this.chosen);
  }

  /** @param {HeadRef | null} chosen */
  mark(chosen) {
    this.chosen = chosen;
    if (this.answer?.sites) this.grid.mark(chosen);
    const name = chosen ? `${chosen.layer}.${chosen.head}` : '';
    for (const button of this.root.querySelectorAll('button[data-a]')) {
      button.setAttribute('aria-pressed', String(button.getAttribute('data-a') === name));
    }
    const list = /** @type {HTMLElement | null} */ (this.root.querySelector('.changed'));
    if (list) settleStop(list);
    this.#say(null);
  }

  /** @param {HeadRef | null} pointed */
  #say(pointed) {
    const ref = pointed ?? this.chosen;
    const head = ref && this.#sites()[ref.layer]?.heads[ref.head];
    this.told.textContent = ref && head ? `${headName(ref, this.prefix)}: ${head.tv.toFixed(3)} moved, largest single change ${head.max.toFixed(3)}` : '';
  }

  #save() {
    const { answer } = this;
    if (!answer) return;
    const rows = answer.sites
      ? [['site', 'head', 'tv', 'max', 'mean'], ...answer.sites.flatMap((s) => s.heads.map((h, i) => [s.site, i, h.tv, h.max, h.mean]))]
      : [['site a', 'head a', 'site b', 'head b', 'tv'], ...(answer.closest ?? []).map(({ a, b, tv }) => [a.site, a.head, b.site, b.head, tv])];
    save('changes.csv', csv(rows), 'text/csv');
  }
}

/** @param {string} name such as 3.1 @returns {HeadRef} */
function parse(name) {
  const [layer, head] = name.split('.').map(Number);
  return { layer, head };
}

/** @param {string} name @param {number} tv @param {string} a @param {string} b */
const row = (name, tv, a, b) => rankedRow({
  name, share: tv, number: tv.toFixed(2), data: { 'data-a': a, 'data-b': b || null }, change: true,
});
