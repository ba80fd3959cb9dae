/** The parameters of a lab as controls, made from its schema. */
import { el } from '../ui/dom.js';
import { minus, numberOf } from '../numbers.js';
import { modelChoice } from './models.js';
import { range, sliding } from './slider.js';

/** @typedef {import('./types.js').Schema} Schema */
/**
 * done: false while a slider is still moved; problem: why the value cannot be used, in a sentence.
 * @typedef {(value: any, done: boolean, problem?: string) => void} OnChange
 */

/**
 * limit: sets the largest value that there is; fault: why a value cannot be used.
 * @typedef {{element: HTMLElement, title: string, help: string, show: (value: any) => void, fault: (value: any) => string | undefined,
 *   limit?: (most: number) => void}} Control
 */

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
  const help = (schema.description ?? '').replaceAll('`', '');
  const about = el('span', { id: `${id}-help`, hidden: true }, help);
  if (help) made.input.setAttribute('aria-describedby', about.id);
  const words = el('label', { for: id, title: help || null }, title);
  made.show(value);
  return { element: el('div', { class: `control ${made.kind}` }, words, ...made.parts, about), title, help: schema.description ?? '', show: made.show,
    fault: made.fault ?? (() => undefined), limit: made.limit };
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

/** @typedef {{kind: string, input: HTMLElement, parts: HTMLElement[], show: (value: any) => void, limit?: (most: number) => void, fault?: (value: any) => string | undefined}} Made */

/** @param {string} name @param {string} title @param {Schema} schema @param {OnChange} onChange @returns {Made} */
function build(name, title, schema, onChange) {
  if (schema.type === 'string' && (name === 'model' || name.endsWith('_model'))) return modelChoice(schema.takes, onChange);
  if (schema.enum) return choice(title, schema.enum, schema.labels ?? {}, onChange);
  if (schema.type === 'boolean') return checkbox(onChange);
  if (schema.type === 'integer' || schema.type === 'number') return number(title, schema, onChange);
  return text(title, schema, onChange);
}

/** @param {string} title @param {string[]} options @param {Record<string, string>} labels @param {OnChange} onChange @returns {Made} */
function choice(title, options, labels, onChange) {
  const input = el('select', {}, ...options.map((option) => el('option', { value: option }, labels[option] ?? option.replaceAll('_', ' '))));
  input.addEventListener('change', () => onChange(input.value, true));
  const named = options.map((option) => labels[option] ?? option);
  return { kind: 'choice', input, parts: [input], show: (value) => { input.value = String(value); },
    fault: (value) => (options.includes(value) ? undefined : `${begins(title)}: choose one of ${named.join(', ')}.`) };
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
function wanted({ type, multipleOf = 1, minimum: least, exclusiveMinimum: above, maximum: most, exclusiveMaximum: below }) {
  const kind = type !== 'integer' ? 'a number' : multipleOf > 1 ? `a multiple of ${grouped(multipleOf)}` : 'a whole number';
  if (least !== undefined && most !== undefined) return `${kind} between ${grouped(least)} and ${grouped(most)}`;
  const bounds = [[above, 'above'], [least, 'from'], [below, 'below'], [most, 'up to']];
  return [kind, ...bounds.flatMap(([bound, word]) => (bound === undefined ? [] : [`${word} ${grouped(Number(bound))}`]))].join(' ');
}

/** @param {number} value @param {Schema} schema */
const within = (value, { type, multipleOf = 1, minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity, exclusiveMaximum = Infinity }) =>
  (type !== 'integer' || Number.isInteger(value / multipleOf)) && value >= minimum && value <= maximum
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
  const ends = range(schema);
  const slider = !ends || ends.high > Number.MAX_SAFE_INTEGER / 2 && schema.type === 'integer' || schema.default === 0 && ends.high > 1e9 ? null : sliding(schema, title);
  const put = (/** @type {number} */ value, /** @type {boolean} */ done) => {
    input.value = String(value);
    input.removeAttribute('aria-invalid');
    onChange(value, done);
  };
  slider?.input.addEventListener('input', () => put(slider.read(), false));
  slider?.input.addEventListener('change', () => put(slider.read(), true));
  const fault = (/** @type {any} */ value) => (typeof value === 'number' && within(value, bounds) ? undefined : `${begins(title)}: write ${wanted(bounds)}.`);
  input.addEventListener('change', () => {
    const value = numberOf(input.value);
    const problem = fault(value);
    input.setAttribute('aria-invalid', String(Boolean(problem)));
    if (!problem) slider?.show(Number(value));
    onChange(value ?? input.value, true, problem);
  });
  const show = (/** @type {any} */ value) => {
    input.value = String(value);
    input.removeAttribute('aria-invalid');
    slider?.show(Number(value));
  };
  return { kind: 'number', input, parts: slider ? [slider.input, input] : [input], show, fault, limit: (most) => {
    bounds = { ...schema, maximum: most };
    slider?.limit(most);
    slider?.show(numberOf(input.value) ?? NaN);
  } };
}

/** Longer texts get a box of several lines. */
const LINE = 300;

/** @param {string} title @param {Schema} schema @param {OnChange} onChange @returns {Made} */
function text(title, schema, onChange) {
  const list = schema.type === 'array';
  const long = !list && ((schema.lines ?? 0) > 1 || (schema.maxLength ?? 0) > LINE);
  const input = long ? el('textarea', { rows: schema.lines ?? 2, spellcheck: 'false', dir: 'auto' }) : el('input', { type: 'text', spellcheck: 'false', dir: 'auto' });
  const read = () => (list ? input.value.split(',').map((part) => numberOf(part) ?? part.trim()) : input.value);
  const fault = (/** @type {any} */ value) => {
    const { minLength = 0, maxLength = Infinity } = schema;
    // Counted as the server counts: in characters, not in halves of them.
    const length = typeof value === 'string' ? [...value].length : minLength;
    if (length < minLength) return `${begins(title)}: write something; it is empty.`;
    return length > maxLength ? `${begins(title)}: write at most ${grouped(maxLength)} characters; these are ${grouped(length)}.` : undefined;
  };
  input.addEventListener('change', () => onChange(read(), true, fault(read())));
  return { kind: long ? 'text long' : 'text', input, parts: [input], show: (value) => { input.value = list ? value.join(', ') : String(value ?? ''); }, fault };
}
