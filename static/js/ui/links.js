/** The heads that link the picked pair, strongest first. */
import { role } from './dom.js';
import { headName, weightText } from './format.js';
import { rankedRow, settleStop, wireRanked } from './ranked.js';

export class Links {
  /**
   * @param {{title: HTMLElement, list: HTMLElement}} parts
   * @param {(ref: import('../types.js').HeadRef) => void} onPick
   */
  constructor({ title, list }, onPick) {
    this.title = title;
    this.list = list;
    wireRanked(/** @type {HTMLElement} */ (list.parentElement));
    list.addEventListener('click', (event) => {
      const button = /** @type {Element} */ (event.target).closest('button');
      if (button) onPick({ layer: Number(button.dataset.layer), head: Number(button.dataset.head) });
    });
  }

  /**
   * @param {import('../types.js').LinksAnswer} answer
   * @param {{query: string, key: string, prefix: string}} words
   * @param {import('../types.js').HeadRef} chosen
   */
  show(answer, words, chosen) {
    const heads = answer.weights.flatMap((layer, l) => layer.map((weight, head) => ({ layer: l, head, weight })));
    heads.sort((a, b) => b.weight - a.weight);
    this.title.replaceChildren('Heads that link ', role('query', words.query), ' → ', role('key', words.key));
    this.list.replaceChildren(...heads.map(({ layer, head, weight }) => rankedRow({
      name: headName({ layer, head }, words.prefix), share: weight, number: weightText(weight),
      data: { 'data-layer': layer, 'data-head': head }, pressed: layer === chosen.layer && head === chosen.head,
    })));
    settleStop(this.list);
  }
}
