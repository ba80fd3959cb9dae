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

  /** @param {CompareAnswer} answer @param {HeadRef | null} chosen */
  show(answer, chosen) {
    [this.answer, this.chosen] = [answer, chosen];
    const menu = exportMenu('changes', () => [
      { label: 'Numbers as CSV', run: () => this.#save() },
      ...(answer.sites ? [{ label: 'Map as PNG', run: () => savePng(this.grid.canvas, 'changes.png') }] : []),
    ]);
    const title = el('div', { class: 'card-title' }, el('h2', {}, 'What changed'), el('div', { class: 'tools' }, menu));
    this.root.replaceChildren(title, ...(answer.sites ? this.#sameHeads(answer) : this.#otherHeads(answer)), ...this.#layers(answer));
    this.paint();
    this.mark(chosen);
  }

  /** @param {CompareAnswer} answer */
  #sameHeads(answer) {
    const ranked = this.#ranked(answer);
    const legend = el('div', { class: 'legend-slot' });
    drawLegend(legend, 'linear', { to: 'change', words: 'TV', width: 120 });
    return [
      el('p', { class: 'soft caption' }, 'total variation of each head’s rows, A against B: the share of attention that moved · layers ↓ heads →'),
      el('div', { class: 'change-map' }, this.grid.element), legend, this.told,
      el('h3', {}, 'Most changed heads'),
      el('ol', { class: 'ranked changed' }, ...ranked.map(({ ref, tv }) => row(headName(ref), tv, `${ref.layer}.${ref.head}`, ''))),
    ];
  }

  /** @param {CompareAnswer} answer */
  #ranked(answer) {
    return (answer.sites ?? []).flatMap((site) => site.heads.map((head, index) => ({ ref: { layer: site.layer, head: index }, tv: head.tv })))
      .sort((a, b) => b.tv - a.tv);
  }

  /** @param {CompareAnswer} answer */
  #otherHeads(answer) {
    const closest = [...(answer.closest ?? [])].sort((a, b) => a.tv - b.tv);
    return [
      el('p', { class: 'soft caption' }, answer.sites_reason ?? ''),
      el('p', { class: 'overall' }, el('b', {}, answer.overall.tv.toFixed(2)), ' total variation between the mean maps of all heads, word by word'),
      el('h3', {}, 'Heads of A and the closest of B'),
      el('p', { class: 'soft caption' }, 'total variation between the two maps; small is alike'),
      el('ol', { class: 'ranked changed' }, ...closest.map(({ a, b, tv }) => row(
        `${siteHead(a.site, a.head)} ~ ${siteHead(b.site, b.head)}`, tv, `${layerOf(a.site)}.${a.head}`, `${layerOf(b.site)}.${b.head}`))),
      ...(answer.unaligned.a.length || answer.unaligned.b.length ? [el('p', { class: 'soft caption' },
        `Left out, being no part of a word in both: ${answer.unaligned.a.length} tokens of A, ${answer.unaligned.b.length} of B.`)] : []),
    ];
  }

  /** @param {CompareAnswer} answer */
  #layers(answer) {
    if (!answer.layers) return answer.layers_reason ? [el('p', { class: 'soft caption' }, answer.layers_reason)] : [];
    return [el('h3', {}, 'Outputs by layer'), el('p', { class: 'soft caption' }, 'cosine between A and B, mean over tokens'),
      el('ol', { class: 'ranked by-layer' }, ...answer.layers.map(({ layer, cosine }) => {
        const bar = el('span', { class: 'bar' });
        bar.style.width = `${100 * Math.max(0, cosine)}%`;
        return el('li', {}, el('span', { class: 'line' }, el('span', { class: 'name' }, `layer ${layer}`),
          el('span', { class: 'track' }, bar), el('span', { class: 'number' }, cosine.toFixed(3))));
      }))];
  }

  /** Draws the map again: the size or the theme has changed. */
  paint() {
    const sites = this.answer?.sites;
    const box = this.grid.element.parentElement;
    if (!sites || !box?.clientWidth) return;
    const heads = Math.max(...sites.map((site) => site.heads.length));
    const cell = Math.max(12, Math.min(30, Math.floor((box.clientWidth - 26) / heads) - 1));
    const { context, cell: pixels, gap } = this.grid.layout(sites.length, heads, cell);
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
    const head = ref && this.answer?.sites?.[ref.layer]?.heads[ref.head];
    this.told.textContent = ref && head ? `${headName(ref)}: ${head.tv.toFixed(3)} moved, largest single change ${head.max.toFixed(3)}` : '';
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
