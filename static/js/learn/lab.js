/** A lab in the page: controls, the run, its pictures, its checks. */
import { Problem } from '../api.js';
import { el, painted } from '../ui/dom.js';
import { checkRows, fill } from './answers.js';
import { asFile, changedOf, exampleFor, helpFor, lost, sharing } from './around.js';
import { control } from './controls.js';
import { link } from './explorelink.js';
import { Picture } from './picture.js';
import { runLab } from './request.js';

/** @typedef {import('./types.js').Result} Result */
/** @typedef {import('./types.js').Spec} Spec */
/**
 * @typedef {{onBusy: () => void, onSettled: (failed: boolean) => void, onPicture: () => void, onValues: (lab: Lab) => void,
 *   defaultModel: string}} Page
 */

/** Places in a text or a model that another text or model may not have. */
const PLACES = ['layer', 'head', 'query', 'key', 'token', 'neuron'];

/** What stands over a lab's checks. */
const CHECKED = 'Checks: a number of this experiment beside what it should be, ± how far they may lie apart.';
const EARLIER = 'These are of the settings before: press Run.';
const GOES_ON = 'What runs now is of the settings before: press Run again for these.';

/** Milliseconds after the last movement of a slider before the lab runs. */
const REST = 120;

export class Lab {
  /**
   * @param {HTMLElement} root
   * @param {Spec} spec
   * @param {string} id its place in the address
   * @param {Page} page
   */
  constructor(root, spec, id, page) {
    this.root = root;
    this.spec = spec;
    this.id = id;
    this.page = page;
    this.section = /** @type {HTMLElement} */ (root.closest('section') ?? root);
    const { properties } = spec.parameters;
    /** @type {Record<string, any>} */
    this.initial = { ...Object.fromEntries(Object.entries(properties).map(([name, { default: value }]) => [name, value])), ...JSON.parse(root.dataset.set ?? '{}') };
    this.parameters = { ...this.initial };
    /** @type {Result | null} */
    this.result = null;
    /** @type {((result: Result) => void)[]} */
    this.listeners = [];
    /** @type {Map<string, Picture>} */
    this.pictures = new Map();
    this.begun = false;
    /** @type {boolean} whether the text or the model was changed, so that what was picked may be gone */
    this.moved = false;
    /** @type {boolean} whether it waits to be asked, since it takes long and others would wait for it */
    this.asked = root.dataset.start === 'asked';
    /** The places that are not there any more, and were shown as the first ones instead. @type {string[]} */
    this.elsewhere = [];
    this.abort = new AbortController();
    this.timer = 0;
    /** Why a control's value cannot be used, by its name. @type {Map<string, string>} */
    this.unusable = new Map();
    /** @type {boolean} whether the run that goes on, or was stopped, has shown anything */
    this.drew = false;
    /** The parameters of the last run, and of what is shown. */
    this.sent = '';
    this.shown = '';
    this.failed = false;
    this.#build(properties);
  }

  /** @param {Record<string, import('./types.js').Schema>} properties */
  #build(properties) {
    const names = (this.root.dataset.controls ?? '').split(/\s+/).filter((name) => name in properties);
    this.controls = Object.fromEntries(names.map((name) => [name, control(name, properties[name], this.parameters[name], (value, done, problem) => this.#changed(name, value, done, problem))]));
    this.button = el('button', { type: 'button', class: 'run-lab' }, 'Run');
    this.button.addEventListener('click', () => { if (this.running) this.stop(); else if (this.unusable.size) this.#refuse(); else void this.run(); });
    this.button.hidden = !this.spec.lengthy;
    this.bar = el('progress', { max: 1, 'aria-label': 'Progress' });
    this.words = el('span', {});
    this.wait = el('div', { class: 'lab-wait' }, this.bar, this.words);
    this.wait.hidden = true;
    this.invitation = el('p', { class: 'lab-asked' }, 'This experiment takes more than two seconds. Press Run to begin.');
    this.invitation.hidden = !this.asked;
    this.problem = el('p', { class: 'lab-problem', role: 'alert' });
    this.problem.hidden = true;
    this.charts = el('div', { class: 'charts' });
    this.due = el('p', { class: 'lab-due', role: 'status' });
    this.due.hidden = true;
    this.checks = el('ul', { class: 'checks' });
    this.checked = el('p', { class: 'checks-head soft' }, CHECKED);
    this.checked.hidden = true;
    this.notes = el('ul', { class: 'notes soft' });
    this.example = el('div', { class: 'lab-example' });
    this.here = sharing(`#${this.id}`, () => this.address ?? `#${this.id}`);
    this.#reserve();
    this.#needs();
    this.root.dataset.testid = `lab-${this.id}`;
    this.root.dataset.state = 'idle';
    this.root.dataset.lengthy = String(this.spec.lengthy);
    this.root.append(el('div', { class: 'controls' }, ...Object.values(this.controls).map(({ element }) => element), this.button), ...helpFor(Object.values(this.controls)), this.invitation, this.wait, this.problem, this.due, this.charts, this.checked, this.checks, this.notes, this.example, this.here);
    for (const picture of this.pictures.values()) picture.reserve();
  }

  /** Keeps the room of the pictures that will come, so that nothing is pushed away by them. */
  #reserve() {
    if (this.asked) return;
    this.charts?.replaceChildren(...this.#wanted([]).map((id) => this.#picture(id).element));
  }

  /** @param {import('./types.js').Series[]} there @returns {string[]} ids of the series to show */
  #wanted(there) {
    return this.root.dataset.show?.split(/\s+/).filter(Boolean) ?? there.map(({ id }) => id);
  }

  /** Shows the controls that play a part: some do only beside certain values of others. */
  #needs() {
    for (const [name, { element }] of Object.entries(this.controls ?? {})) {
      const { needs = {} } = this.spec.parameters.properties[name];
      element.hidden = !Object.entries(needs).every(([other, values]) => values.includes(this.parameters[other]));
    }
  }

  /** @param {string} name @param {any} value @param {boolean} done @param {string} [problem] why the value cannot be used */
  #changed(name, value, done, problem) {
    if (problem) this.unusable.set(name, problem);
    else {
      this.unusable.delete(name);
      this.parameters = { ...this.parameters, [name]: value };
    }
    if (this.unusable.size) return this.#refuse();
    this.moved ||= name === 'text' || name === 'model';
    this.#say();
    window.clearTimeout(this.timer);
    if (this.spec.lengthy) {
      if (this.problem) this.problem.hidden = true;
      this.button?.classList.add('due');
      return this.#age();
    }
    this.#busy();
    this.timer = window.setTimeout(() => { void this.run(); }, done ? 0 : REST);
  }

  /** Marks what is shown where it is of other settings than those that are set. */
  #age() {
    const old = this.spec.lengthy && this.shown !== '' && this.shown !== JSON.stringify(this.parameters);
    this.root.dataset.due = String(old);
    this.section.dataset.stale = String(old || this.failed);
    if (!this.due) return;
    const other = !this.running || this.sent !== JSON.stringify(this.parameters);
    this.due.textContent = this.running ? GOES_ON : EARLIER;
    this.due.hidden = !old || !other;
  }

  /** Says what a control cannot be, and keeps what was found before; a lengthy run goes on. */
  #refuse() {
    window.clearTimeout(this.timer);
    if (this.running && this.spec.lengthy) {
      if (this.problem) [this.problem.hidden, this.problem.textContent] = [false, [...this.unusable.values()][0]];
      return;
    }
    this.abort.abort();
    this.abort = new AbortController();
    this.#busy();
    void this.#settle(null);
  }

  #say() {
    const query = changedOf(this.parameters, this.initial);
    this.address = `#${this.id}${query ? `?${query}` : ''}`;
    this.here?.setAttribute('href', this.address);
    this.#needs();
    this.page.onValues(this);
  }

  /** Other values from outside: the address, or a widget. @param {Record<string, any>} changes */
  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      const fault = this.controls?.[name]?.fault(value);
      this.controls?.[name]?.show(value);
      if (fault) {
        this.unusable.set(name, fault);
        continue;
      }
      this.unusable.delete(name);
      this.parameters = { ...this.parameters, [name]: value };
    }
    this.#say();
    if (this.asked && !this.begun && !this.unusable.size) return Promise.resolve();
    if (!this.unusable.size) return this.run();
    this.begun = true;
    this.#refuse();
    return Promise.resolve();
  }

  /** @param {(result: Result) => void} listener called with each result, partial ones included */
  onResult(listener) {
    this.listeners.push(listener);
    if (this.result) listener(this.result);
  }

  stop() {
    this.abort.abort();
  }

  #busy() {
    if (this.root.dataset.state === 'busy') return;
    this.root.dataset.state = 'busy';
    this.page.onBusy();
  }

  /** @returns {Promise<void>} once what it drew is painted */
  async run() {
    this.begun = true;
    if (this.invitation) this.invitation.hidden = true;
    this.abort.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.#busy();
    this.#waiting(true);
    this.sent = JSON.stringify(this.parameters);
    this.failed = false;
    this.#age();
    this.drew = false;
    this.bar?.removeAttribute('value');
    if (this.words) this.words.textContent = 'computing';
    const late = window.setTimeout(() => { if (this.abort === abort) this.#lasts(); }, 250);
    /** @type {unknown} */
    let failure = null;
    try {
      const result = await runLab(this.spec, this.parameters, abort.signal, (fraction, words, partial) => {
        if (this.abort === abort) this.#progress(fraction, words, partial);
      });
      if (this.abort === abort) this.#show(result);
    } catch (error) {
      failure = error;
    }
    window.clearTimeout(late);
    if (this.abort !== abort) return;
    if (this.moved && failure instanceof Problem && this.#unpick(failure)) return this.run();
    this.moved = false;
    await this.#settle(failure);
  }

  /** Picks the first place instead of one that another text or model does not have. @param {Problem} failure @returns {boolean} whether there was one */
  #unpick(failure) {
    const picked = PLACES.filter((name) => typeof this.parameters[name] === 'number' && this.parameters[name] !== 0);
    const gone = lost(failure.detail, picked);
    for (const name of gone) {
      this.elsewhere.push(`There is no ${name} ${this.parameters[name]} here any more: ${name} 0 is shown instead.`);
      this.parameters = { ...this.parameters, [name]: 0 };
      this.controls?.[name]?.show(0);
    }
    if (gone.length) this.#say();
    return gone.length > 0;
  }

  /** @param {unknown} failure */
  async #settle(failure) {
    this.#waiting(false);
    if (!failure && this.unusable.size) failure = new Problem('bad-request', [...this.unusable.values()][0]);
    const stopped = failure instanceof DOMException && failure.name === 'AbortError';
    this.elsewhere = [];
    this.failed = Boolean(failure) && !(stopped && this.drew);
    this.#age();
    if (this.problem) {
      this.problem.hidden = !failure;
      if (failure) this.problem.textContent = stopped ? this.#stopped() : this.#sentence(failure);
    }
    await painted();
    // What began meanwhile settles in its turn.
    if (this.running) return;
    this.root.dataset.view = this.unusable.size || !this.sent ? JSON.stringify(this.parameters) : this.sent;
    this.root.dataset.state = failure && !stopped ? 'error' : 'ready';
    this.page.onSettled(Boolean(failure) && !stopped);
  }

  /** @param {unknown} failure */
  #sentence(failure) {
    if (failure instanceof Problem) return failure.detail;
    console.error(failure);
    return 'Something in this page went wrong; reload it, and tell us what you did.';
  }

  /** Shows that it takes a while, and lets its reader stop it. */
  #lasts() {
    if (!this.running) return;
    if (this.wait) this.wait.hidden = false;
    if (this.button) this.button.hidden = false;
  }

  /** What is shown of a run that was stopped. */
  #stopped() {
    if (this.drew) return 'Stopped before it was complete: what is shown is what there was by then.';
    return `Stopped before anything was complete: ${this.result ? 'what is shown is of the run before.' : 'there is nothing to show yet.'}`;
  }

  /** @param {boolean} running */
  #waiting(running) {
    this.running = running;
    this.button?.classList.remove('due');
    if (this.button) this.button.textContent = running ? 'Stop' : 'Run';
    if (running) return;
    if (this.wait) this.wait.hidden = true;
    if (this.button) this.button.hidden = !this.spec.lengthy;
  }

  /** @param {number | null} fraction @param {string} words @param {Result | null} partial */
  #progress(fraction, words, partial) {
    if (fraction === null) this.bar?.removeAttribute('value');
    else this.bar?.setAttribute('value', String(fraction));
    if (this.words) this.words.textContent = words;
    if (!partial) return;
    this.drew = true;
    this.#show(partial, true);
  }

  /** @param {Result} result @param {boolean} [partial] more will come */
  #show(result, partial = false) {
    this.result = result;
    this.shown = this.sent;
    this.#age();
    const wanted = this.#wanted(result.series);
    /** @type {{id: string, series: import('./types.js').Series | null}[]} */
    const places = wanted.flatMap((id) => {
      const series = result.series.filter((one) => one.id === id);
      // What a part of the answer lacks keeps its room.
      const kept = partial && !series.length && this.pictures.get(id)?.series === null;
      return kept ? [{ id, series: null }] : series.map((one) => ({ id, series: /** @type {import('./types.js').Series | null} */ (one) }));
    });
    const pictures = places.map(({ id }) => this.#picture(id));
    if (pictures.some((picture, i) => this.charts?.children[i] !== picture.element) || this.charts?.children.length !== pictures.length) {
      this.charts?.replaceChildren(...pictures.map(({ element }) => element));
    }
    pictures.forEach((picture, i) => { const { series } = places[i]; if (series) picture.show(series); });
    if (this.root.dataset.checks !== 'none') this.checks?.replaceChildren(...checkRows(result.checks, wanted, Boolean(this.checks.querySelector('details[open]'))));
    if (this.checked) this.checked.hidden = !this.checks?.children.length;
    for (const [name, most] of Object.entries(result.limits)) this.controls?.[name]?.limit?.(most);
    this.notes?.replaceChildren(...this.elsewhere.concat(result.notes).map((note) => el('li', {}, note)));
    void exampleFor(result, this.parameters, this.controls?.text).then((text) => this.#offer(text));
    this.section.dataset.answered = 'true';
    fill(this.section, result, this.section.querySelector('.lab') === this.root);
    if (this.section.querySelector('.lab') === this.root) void link(this.section, result.facts, this.page.defaultModel);
    for (const listener of this.listeners) listener(result);
    this.page.onPicture();
  }

  /** Offers the text that a model was made for, where it cannot read this one. @param {string | null} text */
  #offer(text) {
    const button = el('button', { type: 'button', class: 'quiet' }, 'Use this model’s example text');
    button.addEventListener('click', () => { void this.set({ text }); });
    this.example?.replaceChildren(...(text === null ? [] : [button]));
  }

  /** @param {string} id */
  #picture(id) {
    const known = this.pictures.get(id);
    if (known) return known;
    const picture = new Picture(id, this.root.dataset.shape, () => asFile(this.spec.name, id, this.result?.parameters ?? this.parameters));
    this.pictures.set(id, picture);
    return picture;
  }

  /** Draws every picture again from what is held. */
  redraw() {
    for (const picture of this.pictures.values()) picture.draw();
  }
}
