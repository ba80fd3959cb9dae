/** Which keys each query may see, and how scores are scaled. Both recompute the whole network. */
import { el } from './dom.js';

/** @typedef {import('../types.js').MaskRule} MaskRule */

/** @type {Record<string, string>} */
const HELP = {
  own: 'the mask the model was trained with',
  bidirectional: 'every token sees every token',
  causal: 'a token sees itself and what came before',
  window: 'a token sees so many before it and after it',
  prefix: 'causal, but every token sees the first so many',
};

let groups = 0;

export class MaskControl {
  /**
   * @param {string} suffix
   * @param {(change: Partial<import('../types.js').Setting>) => void} onChange
   */
  constructor(suffix, onChange) {
    this.onChange = onChange;
    groups += 1;
    this.name = `mask-${groups}`;
    this.choices = el('span', { class: 'choices' });
    this.left = this.#number('left', 'tokens back', 4, `mask-left${suffix}`);
    this.right = this.#number('right', 'ahead', 0, `mask-right${suffix}`);
    this.length = this.#number('length', 'tokens', 4, `mask-length${suffix}`);
    this.mask = el('fieldset', { class: 'segmented mask', 'data-testid': `mask${suffix}` },
      el('legend', { class: 'unseen' }, 'Mask'), this.choices, this.left.label, this.right.label, this.length.label);
    this.scale = el('select', { 'data-testid': `scale${suffix}`, 'aria-label': 'Scale of the scores' },
      el('option', { value: 'own' }, 'scale: own'), el('option', { value: 'none' }, 'scale: none'));
    this.scale.addEventListener('change', () => onChange({ scale: this.scale.value === 'none' ? 'none' : 'own' }));
    this.note = el('span', { class: 'soft mask-note' }, 'every target token sees the whole source');
    this.element = el('div', { class: 'mask-control' }, this.mask, this.note, this.scale);
    this.choices.addEventListener('change', () => this.#emit());
  }

  /**
   * @param {string} name
   * @param {string} words
   * @param {number} value
   * @param {string} testid
   */
  #number(name, words, value, testid) {
    const input = el('input', { type: 'number', min: 0, max: 99999, value, 'data-testid': testid, 'aria-label': `${name}: ${words}` });
    input.addEventListener('change', () => this.#emit());
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') event.preventDefault();
      if (event.key === 'Enter') this.#emit();
    });
    return { input, label: el('label', { class: 'number', hidden: true }, input, ` ${words}`) };
  }

  #emit() {
    const name = this.choices.querySelector('input:checked')?.getAttribute('value');
    const whole = (/** @type {HTMLInputElement} */ input) => Math.max(0, Math.round(Number(input.value) || 0));
    if (name === 'window') this.onChange({ mask: { name, left: whole(this.left.input), right: whole(this.right.input) } });
    else if (name === 'prefix') this.onChange({ mask: { name, length: whole(this.length.input) } });
    else if (name === 'own' || name === 'bidirectional' || name === 'causal') this.onChange({ mask: { name } });
  }

  /**
   * @param {import('../types.js').Setting} side
   * @param {import('../types.js').ModelStatus | undefined} model
   * @param {string | null} group where the model has several, the one that is shown and set
   */
  show(side, model, group) {
    const own = group === 'encoder.self' ? 'bidirectional' : model?.own_mask;
    this.mask.hidden = group === 'decoder.cross';
    this.note.hidden = !this.mask.hidden;
    const other = own === 'causal' ? ['bidirectional'] : own === 'bidirectional' ? ['causal'] : ['bidirectional', 'causal'];
    if (!other.includes(side.mask.name) && (side.mask.name === 'causal' || side.mask.name === 'bidirectional')) {
      other.push(side.mask.name);
    }
    const names = ['own', ...other, 'window', 'prefix'];
    if (this.choices.dataset.names !== names.join() || this.choices.dataset.own !== String(own)) this.#build(names, own);
    const radio = /** @type {HTMLInputElement | null} */ (this.choices.querySelector(`input[value="${side.mask.name}"]`));
    if (radio) radio.checked = true;
    this.left.label.hidden = this.right.label.hidden = side.mask.name !== 'window';
    this.length.label.hidden = side.mask.name !== 'prefix';
    if (side.mask.name === 'window') {
      this.left.input.value = String(side.mask.left);
      this.right.input.value = String(side.mask.right);
    }
    if (side.mask.name === 'prefix') this.length.input.value = String(side.mask.length);
    this.scale.value = side.scale;
    const supports = model?.supports ?? ['set_mask', 'set_scale'];
    this.mask.disabled = !supports.includes('set_mask');
    this.scale.hidden = !supports.includes('set_scale');
  }

  /**
   * @param {string[]} names
   * @param {string | null | undefined} own
   */
  #build(names, own) {
    this.choices.dataset.names = names.join();
    this.choices.dataset.own = String(own);
    this.choices.replaceChildren(...names.map((name) => el('label', { title: HELP[name] },
      el('input', { type: 'radio', name: this.name, value: name }),
      el('span', {}, name === 'own' ? `model’s own` : name))));
  }
}
