/** The parameters of a lab as controls, made from its schema. */
import { models } from '../api.js';
import { el } from '../ui/dom.js';
import { minus, numberOf } from '../ui/format.js';

/** @typedef {import('./types.js').Schema} Schema */
/**
 * done: false while a slider is still moved; problem: why the value cannot be used, in a sentence.
 * @typedef {(value: any, done: boolean, problem?: string) => void} OnChange
 */

/** A range this wide is stepped through by multiplying. */
const WIDE = 1000;
const STEPS = 200;

/** @typedef {{element: HTMLElement, show: (value: any) => void, limit?: (most: number) => void}} Control   limit: the largest value that there is */

let serial = 0;

/**
 * @param {string} name
 * @param {Schema} schema
 * @param {any} value
 * @param {OnChange} onChange
 * @returns {Control}
 */
export function control(name, schema, value, onChange) {
  const known = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
  const title = nameOf(name, known.title);
  const made = build(name, title, known, onChange);
  serial += 1;
  const id = `control-${serial}`;
  made.input.id = id;
  made.input.dataset.control = name;
  const words = el('label', { for: id, title: schema.description }, title);
  made.show(value);
  return { element: el('div', { class: `control ${made.kind}` }, words, ...made.parts), show: made.show, limit: made.limit };
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

/** @typedef {{kind: string, input: HTMLElement, parts: HTMLElement[], show: (value: any) => void, limit?: (most: number) => void}} Made */

/** @param {string} name @param {string} title @param {Schema} schema @param {OnChange} onChange @returns {Made} */
function build(name, title, schema, onChange) {
  if (schema.type === 'string' && (name === 'model' || name.endsWith('_model'))) return modelChoice(onChange);
  if (schema.enum) return choice(schema.enum, schema.labels ?? {}, onChange);
  if (schema.type === 'boolean') return checkbox(onChange);
  if (schema.type === 'integer' || schema.type === 'number') return number(title, schema, onChange);
  return text(schema, onChange);
}

/** @param {string[]} options @param {Record<string, string>} labels @param {OnChange} onChange @returns {Made} */
function choice(options, labels, onChange) {
  const input = el('select', {}, ...options.map((option) => el('option', { value: option }, labels[option] ?? option.replaceAll('_', ' '))));
  input.addEventListener('change', () => onChange(input.value, true));
  return { kind: 'choice', input, parts: [input], show: (value) => { input.value = String(value); } };
}

/** @type {Promise<import('../types.js').ModelList> | null} one answer for all the page's lists of models */
let asked = null;

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
  asked ??= models();
  asked.then(({ models: list }) => offer(list), () => { /* the one that is chosen stays; the lab says what went wrong */ });
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

/** @param {number} value */
const grouped = (value) => minus(Math.abs(value) < 1e15 ? value.toLocaleString('en', { maximumSignificantDigits: 15 }) : String(value));

/** @param {Schema} schema @returns {string} the numbers that it takes, such as "a whole number between 1 and 64" */
function wanted({ type, minimum: least, exclusiveMinimum: above, maximum: most, exclusiveMaximum: below }) {
  const kind = type === 'integer' ? 'a whole number' : 'a number';
  if (least !== undefined && most !== undefined) return `${kind} between ${grouped(least)} and ${grouped(most)}`;
  const bounds = [[above, 'above'], [least, 'from'], [below, 'below'], [most, 'up to']];
  return [kind, ...bounds.flatMap(([bound, word]) => (bound === undefined ? [] : [`${word} ${grouped(Number(bound))}`]))].join(' ');
}

/** @param {number} value @param {Schema} schema */
const within = (value, { type, minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity, exclusiveMaximum = Infinity }) =>
  (type !== 'integer' || Number.isInteger(value)) && value >= minimum && value <= maximum
  && (value > exclusiveMinimum || exclusiveMinimum === -Infinity) && (value < exclusiveMaximum || exclusiveMaximum === Infinity);

/** @param {string} title @returns {string} as a sentence begins; a symbol such as d_k stays as it is written */
const begins = (title) => (/^\p{Ll}{2}/u.test(title) ? title[0].toUpperCase() + title.slice(1) : title);

/**
 * A box for the exact number, and a slider where the schema bounds it. What it cannot be is said before anybody is asked.
 * @param {string} title @param {Schema} schema @param {OnChange} onChange @returns {Made}
 */
function number(title, schema, onChange) {
  const input = el('input', { type: 'text', inputmode: schema.type === 'integer' ? 'numeric' : 'decimal', autocomplete: 'off', spellcheck: 'false' });
  let bounds = schema;
  const [low, high] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const slider = low === undefined || high === undefined || high > Number.MAX_SAFE_INTEGER / 2 || high - low > 1e9 ? null : sliding(low, high, schema);
  slider?.input.addEventListener('input', () => {
    input.value = String(slider.read());
    input.removeAttribute('aria-invalid');
    onChange(slider.read(), false);
  });
  slider?.input.addEventListener('change', () => onChange(slider.read(), true));
  input.addEventListener('change', () => {
    const value = numberOf(input.value);
    const taken = value !== null && within(value, bounds);
    input.setAttribute('aria-invalid', String(!taken));
    if (taken) slider?.show(value);
    onChange(value ?? input.value, true, taken ? undefined : `${begins(title)}: write ${wanted(bounds)}.`);
  });
  return { kind: 'number', input, parts: slider ? [slider.input, input] : [input], show: (value) => {
    input.value = String(value);
    input.removeAttribute('aria-invalid');
    slider?.show(Number(value));
  }, limit: (most) => {
    bounds = { ...schema, maximum: most };
    slider?.limit(most);
    slider?.show(numberOf(input.value) ?? NaN);
  } };
}

/** @param {number} exact @param {number} step @returns {number} the nearest multiple; of steps above 1 never none */
const stepped = (exact, step) => Math.max(step > 1 ? step : -Infinity, Math.round(exact / step) * step);

/** @param {number} low @param {number} high @param {Schema} schema */
function sliding(low, high, { type, description, multipleOf = 1 }) {
  const whole = type === 'integer';
  let [log, start, steps] = [false, low, STEPS];
  const input = el('input', { type: 'range', min: 0, step: 1, 'aria-label': description });
  const limit = (/** @type {number} */ most) => {
    high = most;
    log = low >= 0 && high / Math.max(low, 1) >= WIDE;
    start = log ? Math.max(low, whole ? 1 : high / 1e9) : low;
    steps = !log && whole ? Math.min(high - low, 2000) : STEPS;
    input.max = String(steps);
  };
  limit(high);
  const value = (/** @type {number} */ t) => (log ? start * (high / start) ** t : low + t * (high - low));
  const read = () => {
    const exact = value(steps ? Number(input.value) / steps : 0);
    return whole ? stepped(exact, multipleOf) : Number(exact.toPrecision(3));
  };
  const show = (/** @type {number} */ wanted) => {
    if (!Number.isFinite(wanted)) return;
    const t = log ? Math.log(Math.max(wanted, start) / start) / Math.log(high / start) : (wanted - low) / Math.max(high - low, 1e-9);
    input.value = String(Math.round(Math.min(1, Math.max(0, t)) * steps));
  };
  return { input, read, show, limit };
}

/** Longer texts get a box of several lines. */
const LINE = 300;

/** @param {Schema} schema @param {OnChange} onChange @returns {Made} */
function text(schema, onChange) {
  const list = schema.type === 'array';
  const long = !list && (schema.maxLength ?? 0) > LINE;
  const input = long ? el('textarea', { rows: 2, spellcheck: 'false', dir: 'auto' }) : el('input', { type: 'text', spellcheck: 'false', dir: 'auto' });
  const read = () => (list ? input.value.split(',').map((part) => numberOf(part) ?? part.trim()) : input.value);
  input.addEventListener('change', () => onChange(read(), true));
  return { kind: long ? 'text long' : 'text', input, parts: [input], show: (value) => { input.value = list ? value.join(', ') : String(value ?? ''); } };
}
