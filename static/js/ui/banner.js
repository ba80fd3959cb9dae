/** What went wrong, in one sentence, with what can be done about it. */
import { el, find } from './dom.js';

/** @typedef {{label: string, act: () => void}} Action */

export class Banner {
  constructor() {
    this.box = find(document, '[data-testid="problem"]');
  }

  /**
   * @param {string} sentence
   * @param {Action[]} [actions]
   */
  show(sentence, actions = []) {
    const buttons = actions.map(({ label, act }) => {
      const button = el('button', { type: 'button' }, label);
      button.addEventListener('click', act);
      return button;
    });
    const close = el('button', { type: 'button', class: 'icon', 'aria-label': 'Dismiss' }, '×');
    close.addEventListener('click', () => this.hide());
    this.box.replaceChildren(el('p', {}, sentence), el('span', { class: 'actions' }, ...buttons, close));
    this.box.hidden = false;
  }

  hide() {
    this.box.hidden = true;
    this.box.replaceChildren();
  }
}
