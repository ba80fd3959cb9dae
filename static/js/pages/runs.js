/** What the page asks the server to run: a model, its text or sound, a target where it reads one, and a plan. */
import { Problem, openTrace } from '../api.js';
import { plan } from '../state.js';
import { TraceData } from '../tracedata.js';

/** @typedef {'a' | 'b'} Name */

export class Runs {
  /** @param {import('./explorer.js').Explorer} page */
  constructor(page) {
    this.page = page;
    /** @type {number[] | null} the target that A's model wrote, which B is to read too */
    this.handed = null;
    /** @type {Promise<void> | null} the recording that is on its way, for both sides */
    this.listening = null;
  }

  /**
   * @param {Name[]} names
   * @param {number} turn
   * @param {AbortSignal} signal
   * @returns {Promise<TraceData[]>}
   */
  async open(names, turn, signal) {
    this.handed = null;
    this.listening = null;
    const a = this.#open('a', turn, signal, null);
    const runs = await Promise.all([a, ...names.slice(1).map((name) => this.#open(name, turn, signal, a))]);
    if (this.page.activity.current(turn) && runs.some((run) => run.paired !== runs[0].paired)) throw apart(runs);
    return runs;
  }

  /**
   * @param {Name} name
   * @param {number} turn
   * @param {AbortSignal} signal
   * @param {Promise<TraceData> | null} first the run of A, whose written target B reads too
   */
  async #open(name, turn, signal, first) {
    const { activity, models, state } = this.page;
    const { model } = state[name];
    await models.ready(model, (status) => activity.say(
      turn, `${status.title}: ${status.message ?? status.state}; the text runs as soon as it is here`, status.progress), signal);
    if (models.hears(model) && state.recording) await (this.listening ??= this.page.sound.bring(state.recording));
    if (first && models.paired(model) && !state.target) {
      const { answer } = await first;
      if (activity.current(turn)) this.handed = answer.source_tokens ? answer.tokens.map(({ id }) => id) : null;
    }
    activity.say(turn, `running ${this.page.title(model)}`);
    return new TraceData(await openTrace(this.request(name), signal), this.page.title(model));
  }

  /** @param {Name} name @returns {import('../types.js').TraceRequest} */
  request(name) {
    const { state, models } = this.page;
    const { model } = state[name];
    return { model, ...this.#source(model), ...(models.paired(model) ? this.#target() : {}), plan: plan(state[name]) };
  }

  /** @param {string} model */
  #source(model) {
    const { models, sound, state, ran } = this.page;
    if (!models.hears(model)) return { text: state.text };
    return sound.content(this.page.title(model), { twice: state.view === 'ab', linked: !ran });
  }

  #target() {
    const { target } = this.page.state;
    if (this.handed) return { target_ids: this.handed };
    return target ? { target } : {};
  }
}

/** @param {TraceData[]} runs */
function apart(runs) {
  const [paired, alone] = [true, false].map((wanted) => runs.find((run) => run.paired === wanted)?.title);
  return new Problem('apart', `${paired} reads a source and a target, ${alone} one text, so they cannot be compared: choose two models of one kind.`);
}
