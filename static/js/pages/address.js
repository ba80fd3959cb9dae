/** The state in the address bar: written in order, read on load and on back and forward. */
import { decode, encode } from '../state.js';

/** @typedef {import('../types.js').State} State */

export class Address {
  /** @param {(fragment: string) => void} onVisit the user went back, forward, or changed the fragment */
  constructor(onVisit) {
    /** @type {Promise<unknown>} */
    this.queue = Promise.resolve();
    window.addEventListener('popstate', () => onVisit(location.hash.slice(1)));
  }

  /**
   * @param {State} state
   * @param {boolean} push a step of its own in the history
   * @returns {Promise<unknown>} once the address says so
   */
  write(state, push) {
    const copy = structuredClone(state);
    this.queue = this.queue.then(async () => {
      const fragment = `#${await encode(copy)}`;
      if (fragment === location.hash) return;
      if (push) history.pushState(null, '', fragment);
      else history.replaceState(null, '', fragment);
    });
    return this.queue;
  }

  /** @returns {Promise<State | null>} null when the address says nothing */
  static async read() {
    const fragment = location.hash.slice(1);
    return fragment ? decode(fragment) : null;
  }
}
