/** A lab's numbers in words: checks, facts within sentences, tables, notes. */
import { el } from '../ui/dom.js';
import { minus } from '../ui/format.js';

/** @typedef {import('./types.js').Check} Check */
/** @typedef {import('./types.js').Result} Result */

const SIGN = { '=': '=', '<=': '≤', '>=': '≥' };

/** @param {number | null} value @returns {string} four significant digits, none of them made up */
export function digits(value) {
  if (value === null) return '–';
  if (value === 0) return '0';
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return minus(value.toLocaleString('en'));
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? power(value) : minus(String(Number(value.toPrecision(4))));
}

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** @param {number} value @returns {string} such as 1.20 · 10⁻⁷ */
function power(value) {
  const [mantissa, exponent] = value.toExponential(2).split('e');
  const raised = exponent.replace('+', '').replace('-', '⁻').replace(/\d/g, (digit) => RAISED[Number(digit)]);
  return `${minus(mantissa)} · 10${raised}`;
}

/** @param {any} value @param {string} [format] @returns {string} */
export function formatted(value, format) {
  if (typeof value !== 'number') return value === null || value === undefined ? '–' : String(value);
  if (format === 'percent') return `${digits(100 * value)} %`;
  if (format === 'integer') return minus(Math.round(value).toLocaleString('en'));
  if (format === 'scientific') return value === 0 ? '0' : power(value);
  return digits(value);
}

/** @param {Check[]} checks @param {string[]} shown ids of the series in view @returns {HTMLElement[]} */
export function checkRows(checks, shown) {
  return checks.filter(({ about }) => about === null || shown.includes(about)).map((check) => el('li', {
    class: check.holds ? 'holds' : 'fails', 'data-check': check.name, 'data-holds': String(check.holds),
    'data-measured': String(check.measured), 'data-expected': String(check.expected),
  },
  el('span', { class: 'verdict' }, check.holds ? 'holds' : 'does not hold'), el('span', { class: 'what' }, check.name),
  el('span', {}, 'measured ', el('b', {}, digits(check.measured))),
  el('span', {}, `${check.origin} ${SIGN[check.relation]} `, el('b', {}, digits(check.expected)), check.tolerance ? ` ± ${digits(check.tolerance)}` : '')));
}

/** @param {Record<string, any>} facts @param {string} path such as best.layer @returns {any} */
export const fact = (facts, path) => path.split('.').reduce((/** @type {any} */ value, part) => value?.[part], facts);

/**
 * Fills the sentences of a section that name facts.
 * @param {Element} section
 * @param {Result} result
 * @param {boolean} first whether the lab is the section's first: it fills what names no lab
 */
export function fill(section, result, first) {
  const mine = (/** @type {HTMLElement} */ node) => (node.dataset.of ? node.dataset.of === result.lab : first);
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll('[data-fact]'))) {
    if (mine(node)) node.textContent = formatted(fact(result.facts, node.dataset.fact ?? ''), node.dataset.format);
  }
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll('[data-count]'))) {
    if (mine(node)) node.textContent = numbered(node, fact(result.facts, node.dataset.count ?? ''));
  }
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll('[data-table]'))) {
    if (mine(node)) node.replaceChildren(table(fact(result.facts, node.dataset.table ?? '') ?? []));
  }
}

/**
 * The words that go with a count: data-one for a single thing, else those that stand there.
 * @param {HTMLElement} node @param {any} count
 */
function numbered(node, count) {
  node.dataset.many ??= node.textContent ?? '';
  return (count === 1 ? node.dataset.one : node.dataset.many) ?? '';
}

/** @param {Record<string, any>[]} rows */
function table(rows) {
  const heads = Object.keys(rows[0] ?? {});
  const cell = (/** @type {any} */ value) => el('td', { class: typeof value === 'number' ? 'number' : null }, formatted(value));
  return el('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Table' }, el('table', {},
    el('thead', {}, el('tr', {}, ...heads.map((head) => el('th', { scope: 'col' }, head)))),
    el('tbody', {}, ...rows.map((row) => el('tr', {}, ...heads.map((head) => cell(row[head])))))));
}
