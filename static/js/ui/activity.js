/** What the page is doing, for eyes (`progress`) and for tests (`data-state`, `data-view`). */
import { painted, find } from './dom.js';

export class Activity {
  constructor() {
    this.root = document.documentElement;
    this.box = find(document, '[data-testid="progress"]');
    this.bar = find(this.box, 'progress');
    this.words = find(this.box, 'span');
    this.turn = 0;
    this.timer = 0;
  }

  /**
   * Begins work and abandons what was begun before. Must be called in the handler that starts the work.
   * @returns {number} the turn, to be handed to the other methods
   */
  begin() {
    this.root.dataset.state = 'busy';
    this.turn += 1;
    this.#hide();
    return this.turn;
  }

  /** @param {number} turn */
  current(turn) {
    return turn === this.turn;
  }

  /**
   * Says what is awaited; shown only if it lasts.
   * @param {number} turn
   * @param {string} words
   * @param {number | null} [fraction] null: no telling how long
   */
  say(turn, words, fraction = null) {
    if (!this.current(turn)) return;
    this.words.textContent = words;
    if (fraction === null) this.bar.removeAttribute('value');
    else this.bar.setAttribute('value', String(fraction));
    if (!this.timer && this.box.hidden) this.timer = window.setTimeout(() => { this.box.hidden = false; }, 250);
  }

  /**
   * @param {number} turn
   * @param {string} view hash of the state that is painted
   */
  async ready(turn, view) {
    if (!this.current(turn)) return;
    this.#hide();
    await painted();
    if (!this.current(turn)) return;
    this.root.dataset.view = view;
    this.root.dataset.state = 'ready';
  }

  /** @param {number} turn */
  fail(turn) {
    if (!this.current(turn)) return;
    this.#hide();
    this.root.dataset.state = 'error';
  }

  #hide() {
    window.clearTimeout(this.timer);
    this.timer = 0;
    this.box.hidden = true;
  }
}
