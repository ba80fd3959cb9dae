/** The choice of a model: those that the lab can look into. */
import { models } from '../api.js';
import { el } from '../ui/dom.js';

/** @typedef {import('../types.js').ModelStatus} ModelStatus */

/** @type {Promise<import('../types.js').ModelList> | null} one answer for all the page's lists of models */
let asked = null;

/** @returns {Promise<ModelStatus[]>} */
export async function known() {
  asked ??= models();
  return (await asked).models;
}

/** What a family's models are, whichever of them it is. */
const PAIRED = ['whisper', 'bart', 'mbart', 'marian', 't5', 'm2m_100'];
const READERS = ['bert', 'albert', 'roberta', 'distilbert'];
const ROTARY = ['llama', 'mistral', 'qwen2', 'qwen3', 'gemma', 'gemma2', 'gemma3', 'gpt_neox'];
const TABLES = [...READERS, 'gpt2', 'bart', 'whisper'];

/** @param {ModelStatus} model */
const paired = ({ stacks, family }) => (stacks ? stacks.length > 1 : PAIRED.includes(family ?? ''));

/** What a lab takes, told from what is known of a model; what is not known yet is left to the lab. @type {Record<string, (model: ModelStatus) => boolean>} */
const TAKES = {
  'one stack': (model) => !paired(model),
  cross: (model) => paired(model) || (!model.stacks && !model.family),
  logits: ({ readout, family }) => (readout ? readout === 'logits' : !READERS.includes(family ?? '')),
  embedding: ({ readout }) => !readout || readout === 'embedding',
  learned: ({ family }) => !ROTARY.includes(family ?? ''),
  rope: ({ family }) => !TABLES.includes(family ?? ''),
};

/**
 * @param {ModelStatus[]} list
 * @param {string | string[] | undefined} takes
 * @returns {ModelStatus[]} those that are not known to be refused
 */
export function offered(list, takes = []) {
  const wanted = [takes].flat();
  return list.filter((model) => wanted.every((kind) => TAKES[kind]?.(model) ?? true));
}

/** @param {string | string[] | undefined} takes @param {import('./controls.js').OnChange} onChange @returns {import('./controls.js').Made} */
export function modelChoice(takes, onChange) {
  const input = el('select', {});
  input.addEventListener('change', () => onChange(input.value, true));
  let wanted = '';
  const offer = (/** @type {{id: string, title: string}[]} */ list) => {
    const there = list.some(({ id }) => id === wanted) ? list : [{ id: wanted, title: wanted }, ...list];
    input.replaceChildren(...there.map(({ id, title }) => el('option', { value: id }, title)));
    input.value = wanted;
  };
  known().then((list) => offer(offered(list, takes)), () => { /* the one that is chosen stays; the lab says what went wrong */ });
  return { kind: 'choice', input, parts: [input], show: (value) => {
    wanted = String(value);
    if ([...input.options].some((option) => option.value === wanted)) input.value = wanted;
    else offer([...input.options].map((option) => ({ id: option.value, title: option.textContent ?? '' })));
  } };
}
