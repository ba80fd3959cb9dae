/** A slider over the numbers that a schema allows: each step of the keyboard is another number, its ends are theirs. */
import { el } from '../ui/dom.js';

/** @typedef {import('./types.js').Schema} Schema */

/** A range this wide is stepped through by multiplying. */
const WIDE = 1000;
/** Steps of a slider over fractions or by multiplying; whole numbers have a step each up to MOST. */
const [STEPS, MOST] = [200, 5000];

/** @param {Schema} schema @returns {{low: number, high: number, open: boolean} | null} open: the low end is not allowed itself */
export function range(schema) {
  const [low, high] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  return low === undefined || high === undefined ? null : { low, high, open: schema.minimum === undefined };
}

/** @param {number} exact @param {number} digits */
const rounded = (exact, digits) => Number(exact.toPrecision(digits));

/** @param {number} from @param {number} to @returns {number[]} so many that each is a few percent above the one before */
function multiplied(from, to) {
  const digits = to / from > 1e6 ? 2 : 3;
  return Array.from({ length: STEPS + 1 }, (_, i) => rounded(from * (to / from) ** (i / STEPS), digits));
}

/** @param {number} low @param {number} high @param {number} step */
function added(low, high, step) {
  const count = Math.floor((high - low) / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => Number((low + i * step).toFixed(10)));
}

/** @param {number} width @returns {number} 1, 2 or 5 times a power of ten, about a STEPS-th of the width */
function fine(width) {
  const exact = width / STEPS;
  const power = 10 ** Math.floor(Math.log10(exact));
  return power * (exact / power < 1.5 ? 1 : exact / power < 3.5 ? 2 : exact / power < 7.5 ? 5 : 10);
}

/**
 * @param {Schema} schema bounded on both sides
 * @param {number} [most] the largest value that there is beside the other parameters
 * @returns {number[]} the slider's numbers, rising; the ends are the least and the largest that are allowed
 */
export function stops(schema, most) {
  const { type, multipleOf = 1, default: usual } = schema;
  const { low, high: end, open } = /** @type {{low: number, high: number, open: boolean}} */ (range(schema));
  const high = most === undefined ? end : Math.max(low, most);
  const whole = type === 'integer';
  const allowed = (/** @type {number} */ value) => value <= high && (open ? value > low : value >= low);
  if (whole) {
    const [first, last] = [Math.ceil(low / multipleOf) * multipleOf, Math.floor(high / multipleOf) * multipleOf];
    const wide = first >= 0 && last / Math.max(first, 1) >= WIDE;
    const made = wide ? [first, ...multiplied(Math.max(first, multipleOf), last).map((value) => Math.round(value / multipleOf) * multipleOf), last]
      : [...added(first, last, multipleOf * Math.max(1, Math.ceil((last - first) / multipleOf / MOST))), last];
    return distinct(made.filter((value) => allowed(value) && value >= first));
  }
  // A factor that may be anything above zero is stepped through by multiplying, around what it usually is.
  const least = low > 0 ? low : Math.min(Math.abs(Number(usual)) || high, high) / WIDE;
  const wide = low >= 0 && (low > 0 ? high / low >= WIDE : high >= (open ? 10 : WIDE));
  const made = wide ? [low, ...multiplied(least, high), high] : [...added(low, high, fine(high - low || 1)), high];
  return distinct(made.filter(allowed));
}

/** @param {number[]} values @returns {number[]} */
const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

/** @param {Schema} schema @param {string} label */
export function sliding(schema, label) {
  const input = el('input', { type: 'range', min: 0, step: 1, 'aria-label': label });
  let base = stops(schema);
  let values = base;
  const show = (/** @type {number} */ wanted) => {
    if (!Number.isFinite(wanted)) return;
    // The number that stands there is a stop of its own, so that the ends and the next ones can be reached from it.
    values = distinct([...base, ...(wanted >= base[0] && wanted <= base[base.length - 1] ? [wanted] : [])]);
    const place = values.findIndex((value) => value >= wanted);
    input.max = String(values.length - 1);
    input.value = String(place < 0 ? values.length - 1 : place);
    input.setAttribute('aria-valuetext', String(wanted));
  };
  const read = () => values[Number(input.value)];
  const limit = (/** @type {number} */ most) => { base = stops(schema, most); };
  return { input, read, show, limit };
}
