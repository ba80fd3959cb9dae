/** Chooses a model; shows whether it is here, on its way, or why it is not. */
import { shortTitle } from '../presets.js';
import { el } from './dom.js';

/** @typedef {import('../types.js').ModelStatus} ModelStatus */

const OTHER = '\u0000other';

/** @param {ModelStatus} model */
const kind = (model) => (model.stacks === null ? '' : ` · ${model.stacks.join('–')}`);

/** @param {ModelStatus} model */
function words(model) {
  const percent = model.progress === null ? '' : ` ${Math.round(model.progress * 100)} %`;
  const state = model.state === 'ready' ? '' : ` · ${model.state}${model.state === 'fetching' ? percent : ''}`;
  return `${shortTitle(model.title)}${kind(model)}${state}`;
}

export class ModelPicker {
  /**
   * @param {string} suffix '' or '-b', for the test ids
   * @param {{onChoose: (id: string) => void, onRetry: (id: string) => void}} on
   */
  constructor(suffix, on) {
    this.on = on;
    this.chosen = '';
    /** @type {import('../types.js').ModelList | null} */
    this.list = null;
    this.select = el('select', { 'data-testid': `model${suffix}`, 'aria-label': 'Model' });
    this.other = el('input', {
      type: 'text', 'data-testid': `model-id${suffix}`, 'aria-label': 'Model id', placeholder: 'org/name or local:folder/name',
      hidden: true, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off',
    });
    this.note = el('div', { class: 'model-note', 'data-testid': `model-state${suffix}` });
    this.element = el('div', { class: 'model-picker' }, this.select, this.other, this.note);
    this.select.addEventListener('change', () => this.#chose());
    this.other.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      if (this.other.value.trim()) on.onChoose(this.other.value.trim());
    });
  }

  #chose() {
    const asks = this.select.value === OTHER;
    this.other.hidden = !asks;
    if (asks) this.other.focus();
    else this.on.onChoose(this.select.value);
  }

  /**
   * @param {import('../types.js').ModelList} list
   * @param {string} chosen
   */
  show(list, chosen) {
    [this.list, this.chosen] = [list, chosen];
    const options = list.models.map((model) => el('option', { value: model.id }, words(model)));
    if (!list.models.some((model) => model.id === chosen)) options.push(el('option', { value: chosen }, chosen));
    options.push(el('option', { value: OTHER }, list.hub ? 'Another model, by its Hub id…' : 'Another model, by its local: id…'));
    const same = options.length === this.select.options.length
      && options.every((option, i) => option.textContent === this.select.options[i].textContent);
    const asking = this.select.value === OTHER && !this.other.hidden;
    if (!same) this.select.replaceChildren(...options);
    this.select.value = asking ? OTHER : chosen;
    this.#note(list.models.find((model) => model.id === chosen));
  }

  /** Leaves the free field once its model has been accepted. */
  settle() {
    this.other.hidden = true;
    this.select.value = this.chosen;
  }

  /** @param {ModelStatus | undefined} model */
  #note(model) {
    this.note.replaceChildren();
    this.note.hidden = !model || model.state === 'ready' || model.state === 'absent';
    if (!model || this.note.hidden) return;
    if (model.state === 'failed') {
      const retry = el('button', { type: 'button', class: 'quiet' }, 'Retry');
      retry.addEventListener('click', () => this.on.onRetry(model.id));
      this.note.append(el('span', { class: 'failed' }, `${model.title}: ${model.message ?? 'it could not be fetched'}`), retry);
      return;
    }
    const bar = el('progress', { max: 1, 'aria-label': `${model.title}: ${model.state}` });
    if (model.progress !== null) bar.value = model.progress;
    this.note.append(bar, el('span', {}, model.message ?? model.state));
  }
}
