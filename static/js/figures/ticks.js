/** Where an axis of numbers is labelled. */
import { minus } from '../numbers.js';
import { extent } from './series.js';

/** Steps within a decade, from fine to coarse. */
const WITHIN = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5], [1, 2, 5], [1, 3], [1]];
const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** @param {number} mantissa @param {number} exponent @returns {string} such as 0.5, 20,000 or 2 · 10⁻⁷ */
function text(mantissa, exponent) {
  if (exponent >= -3 && exponent < 6) return Number(`${mantissa}e${exponent}`).toLocaleString('en', { maximumSignificantDigits: 6 });
  const ten = `10${String(exponent).replace('-', '⁻').replace(/\d/g, (digit) => RAISED[Number(digit)])}`;
  return mantissa === 1 ? ten : `${mantissa} · ${ten}`;
}

/**
 * @param {(number | string | null)[]} values
 * @param {number} most labels that there is room for
 * @returns {{tickmode: 'array', tickvals: number[], ticktext: string[]} | null} null where there is nothing to label so
 */
export function logTicks(values, most) {
  const ends = extent(values, true);
  if (!ends) return null;
  // An axis goes on a little beyond what is drawn on it.
  const beyond = (ends[1] / ends[0]) ** 0.05 * 1.001;
  const [low, high] = [ends[0] / beyond, ends[1] * beyond];
  const decades = Array.from({ length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 }, (_, i) => Math.floor(Math.log10(low)) + i);
  const ways = WITHIN.map((steps) => decades.flatMap((exponent) => steps.map((mantissa) => ({ mantissa, exponent, value: Number(`${mantissa}e${exponent}`) }))));
  for (let each = 2; each < 2 * decades.length; each += 1) ways.push(decades.filter((exponent) => exponent % each === 0).map((exponent) => ({ mantissa: 1, exponent, value: Number(`1e${exponent}`) })));
  const seen = ways.map((ticks) => ticks.filter(({ value }) => value >= low && value <= high));
  const ticks = seen.find(({ length }) => length <= most);
  if (!ticks || ticks.length < 2) return null;
  return { tickmode: 'array', tickvals: ticks.map(({ value }) => value), ticktext: ticks.map(({ mantissa, exponent }) => text(mantissa, exponent)) };
}

/**
 * @param {[number, number]} ends
 * @param {number} most labels that there is room for
 * @returns {number} 1, 2 or 5 times a power of ten, and never less than one
 */
function wholeStep([low, high], most) {
  const exact = Math.max(1, (high - low) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(exact));
  const times = [1, 2, 5, 10].find((one) => one * power >= exact - 1e-9) ?? 10;
  return times * power;
}

/**
 * @param {(number | string | null)[]} values
 * @param {number} most labels that there is room for
 * @returns {{tick0: number, dtick: number} | null} null where not all are whole numbers
 */
export function wholeTicks(values, most) {
  const numbers = values.filter((value) => value !== null);
  if (!numbers.length || !numbers.every(Number.isInteger)) return null;
  const ends = extent(values, false);
  return ends && { tick0: 0, dtick: wholeStep(ends, most) };
}

/** A narrow range on an axis of powers: labels as on any other axis. @param {(number | string | null)[]} values @param {number} most */
export function plainTicks(values, most) {
  const ends = extent(values, true);
  if (!ends || ends[0] === ends[1]) return ends ? { tickmode: 'array', tickvals: [ends[0]], ticktext: [minus(String(Number(ends[0].toPrecision(4))))] } : {};
  const exact = (ends[1] - ends[0]) / Math.max(2, most - 1);
  const power = 10 ** Math.floor(Math.log10(exact));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= exact) ?? 10);
  const first = Math.ceil(ends[0] / step);
  const tickvals = Array.from({ length: Math.floor(ends[1] / step) - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return { tickmode: 'array', tickvals, ticktext: tickvals.map((value) => value.toLocaleString('en', { maximumSignificantDigits: 6 })) };
}
