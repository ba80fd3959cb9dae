/** The arithmetic of one query and one key, from their components to the weight. */
import { arithmetic } from '../arithmetic.js';
import { drawPairBars } from '../figures/pairbars.js';
import { shape } from '../figures/svg.js';
import { el, role } from './dom.js';
import { exportMenu } from './exportmenu.js';
import { csv, save, svgFile } from './download.js';
import { weightText } from './format.js';
import { rankedRow, settleStop, wireRanked } from './ranked.js';

/** @typedef {import('../types.js').PairAnswer} PairAnswer */

export class PairPanel {
  /** @param {HTMLElement} root @param {(key: number) => void} onKey */
  constructor(root, onKey) {
    this.root = root;
    this.title = el('h2', {});
    this.caption = el('p', { class: 'soft caption' });
    this.bars = /** @type {SVGSVGElement} */ (shape('svg', { class: 'bars', role: 'img' }));
    this.table = el('table', { class: 'arithmetic', 'data-testid': 'arithmetic' });
    this.components = el('details', { class: 'components' });
    this.looksTitle = el('h3', {});
    this.looks = el('ol', { class: 'ranked looks' });
    const menu = exportMenu('pair', () => [
      { label: 'Numbers as CSV', run: () => this.#save() },
      { label: 'Bars as SVG', run: () => save('pair.svg', svgFile(this.bars), 'image/svg+xml') },
    ]);
    root.append(
      el('div', { class: 'card-title' }, this.title, el('div', { class: 'tools' }, menu)), this.caption,
      el('div', { class: 'pair-body' },
        el('div', { class: 'pair-bars' }, this.bars),
        el('div', { class: 'pair-sum' }, this.table, this.components),
        el('div', { class: 'pair-looks' }, this.looksTitle, this.looks)));
    wireRanked(root);
    /** @type {PairAnswer | null} */
    this.pair = null;
    this.looks.addEventListener('click', (event) => {
      const button = /** @type {Element} */ (event.target).closest('button');
      if (button) onKey(Number(button.dataset.key));
    });
  }

  /**
   * @param {PairAnswer} pair
   * @param {{query: string, key: string, head: string}} words
   */
  show(pair, words) {
    this.pair = pair;
    this.root.classList.remove('without-pair');
    this.title.replaceChildren(role('query', words.query), ' → ', role('key', words.key));
    this.caption.textContent = `one query, one key, ${words.head}, d_k = ${pair.q.length}`;
    drawPairBars(this.bars, pair, { width: 232, height: Math.max(260, Math.min(360, 34 + pair.q.length * 8)) });
    this.bars.setAttribute('aria-label', `components of the query ${words.query}, the key ${words.key}, and their products`);
    this.#sum(pair, words);
    this.#components(pair);
  }

  /** Why there is no pair to show. @param {string} why */
  explain(why) {
    this.pair = null;
    this.title.textContent = 'No such pair here';
    this.caption.textContent = why;
    this.root.classList.add('without-pair');
  }

  /** @param {PairAnswer} pair @param {{query: string, key: string}} words */
  #sum(pair, words) {
    const { numbers: n, adds } = arithmetic(pair);
    const open = pair.mask === 'open';
    const given = pair.weight_words;
    /** @type {[Node | string, string, string][]} */
    const softmax = given ? [] : [
      ['largest score in the row, m', n.max, 'max'],
      ['e^(s − m)', n.exp, 'exp'],
      ['÷ Σ of e^(s − m) over the row', n.sum, 'sum'],
    ];
    /** @type {[Node | string, string, string][]} */
    const rows = [
      [el('span', {}, role('query', 'q'), ' · ', role('key', 'k')), n.dot, 'dot'],
      [`× ${pair.scale_words} = ${n.scale}`, n.scaled, 'scaled'],
      ...(pair.softcap === null ? [] : [/** @type {[string, string, string]} */ ([`${n.cap} × tanh(scaled ÷ ${n.cap})`, n.capped, 'capped'])]),
      [pair.bias === 0 ? '+ position bias' : `+ ${pair.bias_words}`, n.bias, 'bias'],
      ['mask', open ? 'open' : 'closed', 'mask'],
      ['score s', n.score, 'score'],
      ...softmax,
      [given ? el('span', {}, el('b', {}, 'weight'), `, ${given}`) : el('b', {}, 'weight'), n.weight, 'weight'],
      [el('span', {}, '‖weight · ', role('value', 'v'), ' W_O‖, what it adds'), pair.contribution_norm.toPrecision(4), 'carried'],
    ];
    this.table.replaceChildren(
      el('caption', { class: 'unseen' }, `From the components of ${words.query} and ${words.key} to the weight`),
      el('tbody', {}, ...rows.map(([label, value, step]) => el('tr', { class: `step-${step}` },
        el('th', { scope: 'row' }, label), el('td', { 'data-step': step }, value)))));
    this.table.dataset.adds = String(adds);
    this.table.after(this.components);
    this.root.querySelector('.pair-note')?.remove();
    const note = [given ? `The plan sets this head’s weights (${given}): the weight does not follow from the score.` : '', pair.bias === 0 ? `${pair.bias_words.replace(/^none: /, 'No position bias: ')}.` : '', adds ? '' : 'The last digits differ by float32 rounding.'];
    this.table.after(el('p', { class: 'soft pair-note' }, note.join(' ').trim()));
  }

  /** @param {PairAnswer} pair */
  #components(pair) {
    const body = pair.q.map((_, i) => el('tr', {},
      ...[String(i), ...[pair.q[i], pair.k[i], pair.products[i], pair.v[i]].map((x) => x.toFixed(4))].map((t) => el('td', {}, t))));
    this.components.replaceChildren(
      el('summary', {}, `all ${pair.q.length} components`),
      el('div', { class: 'scroll' }, el('table', {},
        el('thead', {}, el('tr', {}, ...['', 'q', 'k', 'q×k', 'v'].map((t) => el('th', {}, t)))), el('tbody', {}, ...body))));
  }

  /**
   * Where the query looks, heaviest first.
   * @param {ArrayLike<number>} row weights by key
   * @param {string[]} labels of the keys
   * @param {string} query
   * @param {number} picked key
   */
  ranking(row, labels, query, picked) {
    const order = Array.from(row, (weight, key) => ({ weight, key }))
      .sort((a, b) => b.weight - a.weight).slice(0, 40).filter(({ weight }) => weight > 0);
    this.looksTitle.replaceChildren('Where ', role('query', query), ' looks');
    this.looks.replaceChildren(...order.map(({ weight, key }) => rankedRow({
      name: labels[key], share: weight, number: weightText(weight), data: { 'data-key': key }, pressed: key === picked,
    })));
    settleStop(this.looks);
  }

  #save() {
    const { pair } = this;
    if (!pair) return;
    const rows = pair.q.map((_, i) => [i, pair.q[i], pair.k[i], pair.products[i], pair.v[i]]);
    save('pair.csv', csv([['component', 'q', 'k', 'product', 'v'], ...rows]), 'text/csv');
  }
}
