/** The parameters of a lab as controls, made from its schema. */
import { models } from '../api.js';
import { el } from '../ui/dom.js';

/** @typedef {import('./types.js').Schema} Schema */
/** @typedef {(value: any, done: boolean) => void} OnChange done: false while a slider is still moved */

/** A range this wide is stepped through by multiplying. */
const WIDE = 1000;
const STEPS = 200;

let serial = 0;

/**
 * @param {string} name
 * @param {Schema} schema
 * @param {any} value
 * @param {OnChange} onChange
 * @returns {{element: HTMLElement, show: (value: any) => void}}
 */
export function control(name, schema, value, onChange) {
  const known = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
  const made = build(name, known, onChange);
  serial += 1;
  const id = `control-${serial}`;
  made.input.id = id;
  made.input.dataset.control = name;
  const words = el('label', { for: id, title: schema.description }, nameOf(name, known.title));
  made.show(value);
  return { element: el('div', { class: `control ${made.kind}` }, words, ...made.parts), show: made.show };
}

/**
 * @param {string} name
 * @param {string | undefined} title what the schema calls it; pydantic makes one of the name where nobody gave one
 * @returns {string} a symbol such as d_k stays as it is written
 */
function nameOf(name, title) {
  const made = name.split('_').map((part) => part[0]?.toUpperCase() + part.slice(1)).join(' ');
  if (title && title !== made) return title;
  return /^[a-z]_/.test(name) ? name : name.replaceAll('_', ' ');
}

/** @typedef {{kind: string, input: HTMLElement, parts: HTMLElement[], show: (value: any) => void}} Made */

/** @param {string} name @param {Schema} schema @param {OnChange} onChange @returns {Made} */
function build(name, schema, onChange) {
  if (schema.type === 'string' && (name === 'model' || name.endsWith('_model'))) return modelChoice(onChange);
  if (schema.enum) return choice(schema.enum, schema.labels ?? {}, onChange);
  if (schema.type === 'boolean') return checkbox(onChange);
  if (schema.type === 'integer' || schema.type === 'number') return number(schema, onChange);
  return text(schema, onChange);
}

/** @param {string[]} options @param {Record<string, string>} labels @param {OnChange} onChange @returns {Made} */
function choice(options, labels, onChange) {
  const input = el('select', {}, ...options.map((option) => el('option', { value: option }, labels[option] ?? option.replaceAll('_', ' '))));
  input.addEventListener('change', () => onChange(input.value, true));
  return { kind: 'choice', input, parts: [input], show: (value) => { input.value = String(value); } };
}

/** @param {OnChange} onChange @returns {Made} */
function modelChoice(onChange) {
  const input = el('select', {});
  input.addEventListener('change', () => onChange(input.value, true));
  let wanted = '';
  const offer = (/** @type {{id: string, title: string}[]} */ list) => {
    const known = list.some(({ id }) => id === wanted) ? list : [{ id: wanted, title: wanted }, ...list];
    input.replaceChildren(...known.map(({ id, title }) => el('option', { value: id }, title)));
    input.value = wanted;
  };
  models().then(({ models: list }) => offer(list), () => { /* the one that is chosen stays; the lab says what went wrong */ });
  return { kind: 'choice', input, parts: [input], show: (value) => {
    wanted = String(value);
    if ([...input.options].some((option) => option.value === wanted)) input.value = wanted;
    else offer([...input.options].map((option) => ({ id: option.value, title: option.textContent ?? '' })));
  } };
}

/** @param {OnChange} onChange @returns {Made} */
function checkbox(onChange) {
  const input = el('input', { type: 'checkbox' });
  input.addEventListener('change', () => onChange(input.checked, true));
  return { kind: 'tick', input, parts: [input], show: (value) => { input.checked = Boolean(value); } };
}

/**
 * A box for the exact number, and a slider where the schema bounds it. What is no number is sent as it was written:
 * the lab says what is wrong with it.
 * @param {Schema} schema @param {OnChange} onChange @returns {Made}
 */
function number(schema, onChange) {
  const input = el('input', { type: 'text', inputmode: schema.type === 'integer' ? 'numeric' : 'decimal', autocomplete: 'off', spellcheck: 'false' });
  const read = () => (input.value.trim() !== '' && Number.isFinite(Number(input.value)) ? Number(input.value) : input.value);
  const [low, high] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const slider = low === undefined || high === undefined || high > Number.MAX_SAFE_INTEGER / 2 || high - low > 1e9 ? null : sliding(low, high, schema);
  slider?.input.addEventListener('input', () => {
    input.value = String(slider.read());
    onChange(slider.read(), false);
  });
  slider?.input.addEventListener('change', () => onChange(slider.read(), true));
  input.addEventListener('change', () => {
    slider?.show(Number(read()));
    onChange(read(), true);
  });
  return { kind: 'number', input, parts: slider ? [slider.input, input] : [input], show: (value) => {
    input.value = String(value);
    slider?.show(Number(value));
  } };
}

/** @param {number} exact @param {number} step @returns {number} the nearest multiple; of steps above 1 never none */
const stepped = (exact, step) => Math.max(step > 1 ? step : -Infinity, Math.round(exact / step) * step);

/** @param {number} low @param {number} high @param {Schema} schema */
function sliding(low, high, { type, description, multipleOf = 1 }) {
  const whole = type === 'integer';
  const log = low >= 0 && high / Math.max(low, 1) >= WIDE;
  const start = log ? Math.max(low, whole ? 1 : high / 1e9) : low;
  const steps = log ? STEPS : whole ? Math.min(high - low, 2000) : STEPS;
  const input = el('input', { type: 'range', min: 0, max: steps, step: 1, 'aria-label': description });
  const value = (/** @type {number} */ t) => (log ? start * (high / start) ** t : low + t * (high - low));
  const read = () => {
    const exact = value(Number(input.value) / steps);
    return whole ? stepped(exact, multipleOf) : Number(exact.toPrecision(3));
  };
  const show = (/** @type {number} */ wanted) => {
    if (!Number.isFinite(wanted)) return;
    const t = log ? Math.log(Math.max(wanted, start) / start) / Math.log(high / start) : (wanted - low) / (high - low);
    input.value = String(Math.round(Math.min(1, Math.max(0, t)) * steps));
  };
  return { input, read, show };
}

/** Longer texts get a box of several lines. */
const LINE = 300;

/** @param {Schema} schema @param {OnChange} onChange @returns {Made} */
function text(schema, onChange) {
  const list = schema.type === 'array';
  const long = !list && (schema.maxLength ?? 0) > LINE;
  const input = long ? el('textarea', { rows: 2, spellcheck: 'false', dir: 'auto' }) : el('input', { type: 'text', spellcheck: 'false', dir: 'auto' });
  const read = () => (list ? input.value.split(',').map((part) => (part.trim() !== '' && Number.isFinite(Number(part)) ? Number(part) : part.trim())) : input.value);
  input.addEventListener('change', () => onChange(read(), true));
  return { kind: long ? 'text long' : 'text', input, parts: [input], show: (value) => { input.value = list ? value.join(', ') : String(value ?? ''); } };
}
