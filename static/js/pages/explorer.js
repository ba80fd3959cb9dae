/** The Explore page's behaviour: what the user asks for becomes runs, pictures and an address. */
import { compare } from '../api.js';
import { presets, shortTitle } from '../presets.js';
import { asked, changed, digest, initial, nothing, setting, side } from '../state.js';
import { Activity } from '../ui/activity.js';
import { Banner } from '../ui/banner.js';
import { Changes } from '../ui/changes.js';
import { Column } from '../ui/column.js';
import { Controls } from '../ui/controls.js';
import { el, find } from '../ui/dom.js';
import { ModelStore } from '../ui/modelstore.js';
import { plotly } from '../ui/plotly.js';
import { wireTextBox } from '../ui/textbox.js';
import { TargetBox } from '../ui/targetbox.js';
import { SoundBox } from '../ui/soundbox.js';
import { Address } from './address.js';
import { Failures } from './failures.js';
import { wireLayout } from './layout.js';
import { Present } from './present.js';
import { Runs } from './runs.js';
import { mend } from './validate.js';

/** @typedef {import('../types.js').State} State */
/** @typedef {import('../tracedata.js').TraceData} TraceData */
/** @typedef {'a' | 'b'} Name */

export class Explorer {
  /** @param {{default_model: string, recordings: import('../types.js').Recording[]}} boot */
  constructor(boot) {
    this.boot = boot;
    /** @type {State} */
    this.state = initial(boot.default_model);
    this.activity = new Activity();
    this.banner = new Banner();
    const again = () => { void this.run(true); };
    this.text = wireTextBox(find(document, '[data-testid="text"]'), again);
    this.target = new TargetBox(again);
    this.sound = new SoundBox(boot.recordings, () => {
      this.state.recording = this.sound.recording;
      again();
    }, (sentence) => this.banner.show(sentence));
    this.controls = new Controls({ onView: (view) => this.#view(view), onPreset: (p) => this.#sides(p.a, p.b, 'ab') });
    this.models = new ModelStore(() => this.#showControls());
    this.address = new Address((fragment) => { void this.#visit(fragment); });
    this.columns = { a: this.#column('a'), b: this.#column('b') };
    this.stage = find(document, '.stage');
    this.stage.prepend(this.columns.a.element, this.columns.b.element);
    this.changes = new Changes(find(document, '[data-testid="changes"]'), (a, b) => this.#pickHeads(a, b));
    this.present = new Present(this);
    this.failures = new Failures(this);
    this.runs = new Runs(this);
    this.running = false;
    /** @type {string[]} what is to be said of the link that was opened */
    this.pending = [];
    this.abort = new AbortController();
    /** @type {{text: string, target: string, sound: string, shown: string, a: string, b: string} | null} what was last run */
    this.ran = null;
    /** @type {import('../types.js').CompareAnswer | null} */
    this.comparison = null;
    find(document, '[data-testid="ask"]').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.run(true);
    });
    wireLayout(this.stage, {
      redraw: () => this.redraw(),
      recolour: () => {
        this.redraw();
        if (this.comparison) this.changes.show(this.comparison, this.changes.chosen, this.changes);
      },
    });
  }

  /** Draws every picture again from what is held. */
  redraw() {
    this.columns.a.redraw();
    if (this.state.view === 'ab') this.columns.b.redraw();
    this.changes.paint();
  }

  /** @param {Name} name */
  #column(name) {
    const again = () => { void this.run(true); };
    return new Column(name, {
      onModel: (model) => this.#model(name, model),
      onRetry: () => { void this.run(false); },
      onSetting: (change) => { this.state = { ...this.state, [name]: changed(this.state[name], this.group(name), change) }; again(); },
      onGroup: (group) => this.#group(group),
      onHead: (ref) => (name === 'a' ? this.#pickHeads(ref, null) : this.#pickB(ref)),
      onPair: (rows, cols) => { void this.present.pickCell(name, rows, cols); },
      onMove: (pair) => this.present.pickPair(name, pair),
      onZoom: (zoom) => this.change({ zoom }, true),
      onTab: (tab) => this.change({ tab }, true),
      onColour: (colour) => {
        this.change({ colour }, true);
        this.columns.a.transfer = this.columns.b.transfer = colour;
        this.redraw();
      },
    });
  }

  /** First contact: the models, then the address's state or the example. */
  async start() {
    const turn = this.activity.begin();
    this.activity.say(turn, 'asking for the models');
    try {
      await this.models.refresh();
      const linked = await this.#linked();
      const first = this.models.get(this.models.list.default);
      this.state = linked ?? { ...initial(this.models.list.default), text: first?.example ?? '', recording: first?.recording ?? '' };
      await this.run(false, !linked);
    } catch (error) {
      this.failures.show(turn, error, () => { void this.start(); });
    }
  }

  /** @returns {Promise<State | null>} */
  async #linked() {
    try {
      return await Address.read();
    } catch (error) {
      this.pending.push(/** @type {Error} */ (error).message);
      return null;
    }
  }

  /** @param {string} fragment */
  async #visit(fragment) {
    try {
      const state = fragment ? await Address.read() : null;
      if (!state) return;
      const again = JSON.stringify(asked(state)) !== JSON.stringify(asked(this.state));
      this.state = state;
      if (again) await this.run(false, true);
      else await this.#look(false);
    } catch (error) {
      this.banner.show(/** @type {Error} */ (error).message);
    }
  }

  #showControls() {
    const { state, models } = this;
    this.controls.show(presets(models.list.models), state);
    for (const name of /** @type {Name[]} */ (['a', 'b'])) {
      const column = this.columns[name];
      column.picker.show(models.list, state[name].model);
      column.masks.show(setting(state[name], this.group(name)), models.get(state[name].model), this.group(name));
      const slot = name === 'a' && state.view === 'one' ? find(document, '[data-setup="one"]') : column.part('.column-head .setup-slot');
      if (column.picker.element.parentElement !== slot) slot.append(column.picker.element, column.masks.element);
      column.element.hidden = name === 'b' && state.view === 'one';
    }
    this.stage.dataset.view = state.view;
    this.target.element.hidden = !this.names().some((name) => models.paired(state[name].model));
    const hearing = this.names().map((name) => models.hears(state[name].model));
    this.sound.element.hidden = !hearing.includes(true);
    this.text.element.hidden = !hearing.includes(false);
    find(document, '[data-setup="one"]').hidden = state.view === 'ab';
    find(document, '[data-testid="changes"]').hidden = state.view === 'one';
  }

  /** @param {'one' | 'ab'} view */
  #view(view) {
    if (view === this.state.view) return;
    const { a, b } = this.state;
    const alike = this.models.paired(a.model) === this.models.paired(b.model);
    const apart = alike && JSON.stringify(a) !== JSON.stringify(b);
    this.#sides(a, view === 'ab' && !apart ? this.#other(a) : b, view);
  }

  /** @param {import('../types.js').Side} a @returns {import('../types.js').Side} the same under another mask */
  #other(a) {
    const shown = this.group('a');
    const group = shown === 'decoder.cross' ? 'encoder.self' : shown;
    const own = group === 'encoder.self' ? 'bidirectional' : this.models.get(a.model)?.own_mask;
    /** @type {'bidirectional' | 'causal'} */
    const other = own === 'causal' ? 'bidirectional' : 'causal';
    return changed(a, group, { mask: { name: setting(a, group).mask.name === 'own' ? other : 'own' } });
  }

  /** @param {Name} name @param {string} model */
  #model(name, model) {
    const [from, to] = [this.models.get(this.state[name].model), this.models.get(model)];
    // an example is replaced by the next model's, a text of the user's own never
    const untouched = this.text.value() === (from?.example ?? '');
    if (this.state.view === 'one' && untouched && to?.example && !this.models.hears(model)) this.text.set(to.example);
    this.state = { ...this.state, [name]: side(model), recording: this.sound.held ? this.state.recording : to?.recording ?? '' };
    void this.run(true);
  }

  /** @returns {Name[]} the columns in view */
  names() {
    return this.state.view === 'ab' ? ['a', 'b'] : ['a'];
  }

  /** @param {Name} name @returns {string | null} the group that the column shows; null where its model has only one */
  group(name) {
    const { data } = this.columns[name];
    const { model } = this.state[name];
    if (!this.models.paired(model)) return null;
    return data?.answer.model.id === model ? data.group : this.state.pick.stack ?? 'decoder.cross';
  }

  /** @param {string} group another attention of the same run */
  #group(group) {
    this.state = { ...this.state, pick: { ...nothing(), stack: group }, pickB: null, zoom: null };
    void this.#look(true);
  }

  /** @param {import('../types.js').Side} a @param {import('../types.js').Side} b @param {'one' | 'ab'} view */
  #sides(a, b, view) {
    this.state = { ...this.state, a: structuredClone(a), b: structuredClone(b), view };
    void this.run(true);
  }

  /** @param {import('../types.js').HeadRef} a @param {import('../types.js').HeadRef | null} b */
  #pickHeads(a, b) {
    this.state.pickB = b;
    this.change({ pick: { ...this.state.pick, ...a, auto: false } }, true);
  }

  /** @param {import('../types.js').HeadRef} ref */
  #pickB(ref) {
    if (this.state.a.model === this.state.b.model) this.#pickHeads(ref, null);
    else this.change({ pickB: ref }, true);
  }

  /** @param {Partial<State>} change what needs no new run @param {boolean} push */
  change(change, push) {
    this.state = { ...this.state, ...change };
    void this.present.show(push);
  }

  /**
   * Runs the text. Sets the page busy before anything else, so that whoever asked can wait for the end.
   * @param {boolean} push a step of its own in the history
   * @param {boolean} [given] the state's own text instead of the box's
   */
  async run(push, given = false) {
    const turn = this.activity.begin();
    this.abort.abort();
    this.abort = new AbortController();
    if (given || !this.ran) this.text.set(this.state.text || this.text.value());
    if (given || !this.ran) this.target.set(this.state.target);
    this.state.text = this.text.value();
    this.state.target = this.target.value();
    this.banner.hide();
    // they were said of the run before, and would stand there as if this one had failed because of them
    find(document, '[data-testid="notices"]').replaceChildren();
    this.#showControls();
    try {
      await this.#run(turn, push, given);
    } catch (error) {
      this.failures.show(turn, error, () => { void this.run(push); });
    }
  }

  /** @param {number} turn @param {boolean} push @param {boolean} given */
  async #run(turn, push, given) {
    this.running = true;
    const { signal } = this.abort;
    const names = this.names();
    const { text, target } = this.state;
    const runs = await this.runs.open(names, turn, signal);
    if (!this.activity.current(turn)) return;
    if (!given) this.#forget();
    const data = runs.map((run) => (this.state.pick.stack === null ? run : run.at(this.state.pick.stack)));
    this.present.ahead(data, signal);
    this.pending.push(...mend(this.state, data[0]));
    const sound = this.sound.held?.name ?? '';
    this.ran = { text, target, sound, shown: runs[0].answer.source_tokens?.[0]?.id === -1 ? sound : text, a: this.state.a.model, b: this.state.b.model };
    this.target.written(runs[0].answer, names.length === 2);
    this.#begin(data);
    this.running = false;
    delete this.stage.dataset.stale;
    this.#chips(data);
    const notices = [...new Set(data.flatMap((d) => d.answer.notices))];
    find(document, '[data-testid="notices"]').replaceChildren(...notices.map((sentence) => el('p', {}, sentence)));
    this.columns.a.picker.settle();
    this.columns.b.picker.settle();
    this.comparison = null;
    this.comparing = names.length === 2 ? this.#compare(signal) : null;
    this.comparing?.catch(() => { /* awaited, and reported, where the picture is put together */ });
    await this.present.first(turn, push, data);
  }

  /** @param {TraceData[]} data */
  #begin(data) {
    const { text, target } = this.state;
    this.stage.hidden = false;
    this.names().forEach((name, i) => this.columns[name].begin(data[i], { text, target, sound: this.sound.held }));
    this.#showControls();
  }

  /** Looks at what the state names in the runs that are held. @param {boolean} push */
  async #look(push) {
    const held = this.names().map((name) => this.columns[name].data);
    if (held.some((data) => !data)) return;
    const data = /** @type {TraceData[]} */ (held);
    const { stack } = this.state.pick;
    if (stack === null || stack === data[0].group) return this.present.show(push);
    const views = data.map((run) => run.at(stack));
    const turn = this.activity.begin();
    this.#begin(views);
    try {
      await this.present.first(turn, push, views);
    } catch (error) {
      this.failures.show(turn, error, () => { void this.#look(push); });
    }
  }

  /** @param {string} model @returns {string} its name for readers */
  title(model) {
    return shortTitle(this.models.get(model)?.title ?? model);
  }

  /** What was picked for another text or model means nothing for this one. */
  #forget() {
    const { ran, state } = this;
    if (!ran) return;
    if (ran.a !== state.a.model) [state.pick, state.zoom] = [nothing(), null];
    else if (ran.text !== state.text || ran.target !== state.target || ran.sound !== (this.sound.held?.name ?? '')) {
      state.pick = state.pick.auto ? { ...nothing(), stack: state.pick.stack } : { ...state.pick, query: null, key: null };
      state.zoom = null;
    }
    if (ran.a !== state.a.model || ran.b !== state.b.model) state.pickB = null;
  }

  /** @param {AbortSignal} signal */
  async #compare(signal) {
    this.changes.wait();
    const by = this.state.a.model === this.state.b.model ? 'token' : 'word';
    return compare(this.runs.request('a'), this.runs.request('b'), by, signal);
  }

  /** @param {TraceData[]} data */
  #chips(data) {
    const { device, dtype } = data[0].answer;
    const chip = (/** @type {string} */ text) => el('span', { class: 'chip' }, text);
    find(document, '[data-testid="device"]').replaceChildren(
      chip(`${device} · ${dtype} · ${data.map((d) => d.answer.ms.toFixed(d.answer.ms < 10 ? 1 : 0)).join(' + ')} ms`));
  }

  /** A hash of what is painted. */
  view() {
    const ids = [this.columns.a, this.columns.b].map((column) => (column.element.hidden ? '' : column.data?.answer.id ?? ''));
    return digest(JSON.stringify([this.state, ids]));
  }

  /** Plotly comes once the first picture is painted. */
  async bringPlotly() {
    try {
      await plotly();
    } catch {
      this.banner.show('Plotly could not be loaded from the server: the matrix is drawn plainly and cannot be saved as PNG or SVG. Reload to try again.');
    }
  }
}
