/** The models the server knows, kept fresh while any of them is on its way. */
import * as api from '../api.js';

/** @typedef {import('../types.js').ModelStatus} ModelStatus */

const MOVING = ['queued', 'fetching', 'loading'];

export class ModelStore {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {import('../types.js').ModelList} */
    this.list = { default: '', device: '', dtype: '', hub: false, models: [] };
    this.timer = 0;
  }

  async refresh() {
    this.list = await api.models();
    this.onChange();
    this.#follow();
  }

  /** @param {string} id */
  get(id) {
    return this.list.models.find((model) => model.id === id);
  }

  /** @param {string} id @returns {boolean} whether the model has an encoder beside its decoder */
  paired(id) {
    return (this.get(id)?.stacks?.length ?? 1) > 1;
  }

  /** @param {string} id @returns {boolean} whether the model reads sound instead of text */
  hears(id) {
    return this.get(id)?.family === 'whisper';
  }

  #follow() {
    window.clearTimeout(this.timer);
    if (!this.list.models.some((model) => MOVING.includes(model.state))) return;
    this.timer = window.setTimeout(() => {
      this.refresh().catch(() => { /* the next thing the user asks for will say that the server is gone */ });
    }, 1000);
  }

  /** @param {ModelStatus} status */
  #put(status) {
    const at = this.list.models.findIndex((model) => model.id === status.id);
    if (at < 0) this.list.models.push(status);
    else this.list.models[at] = status;
    this.onChange();
  }

  /**
   * Waits until a model can run.
   * @param {string} id
   * @param {(status: ModelStatus) => void} onStatus
   * @param {AbortSignal} signal
   * @throws {api.Problem} why it cannot be had
   */
  async ready(id, onStatus, signal) {
    if (this.get(id)?.state === 'ready') return;
    /** @type {ModelStatus | null} */
    let last = null;
    await api.loadModel(id, (status) => {
      last = status;
      this.#put(status);
      onStatus(status);
    }, signal);
    const end = /** @type {ModelStatus | null} */ (/** @type {unknown} */ (last));
    if (end?.state === 'ready') return;
    throw new api.Problem('fetch-failed', `${end?.title ?? id} could not be had: ${end?.message ?? 'the server ended the transfer without saying why'}.`);
  }
}
