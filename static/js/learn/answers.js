/** A lab's numbers in words: checks, facts within sentences, tables, notes. */
import { el } from '../ui/dom.js';
import { minus } from '../numbers.js';

/** @typedef {import('./types.js').Check} Check */
/** @typedef {import('./types.js').Result} Result */

const SIGN = { '=': '=', '<=': '≤', '>=': '≥' };

/** A narrow space that does not break: between a number and its percent sign. */
const NARROW = '\u202f';
/** A space that does not break: around the point of a power of ten. */
const FIRM = '\u00a0';

/** @param {number | null} value @returns {string} four significant digits, none of them made up; powers of ten where there would be many zeros */
export function digits(value) {
  if (value === null) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return grouped(value);
  return size >= 1e6 || size < 1e-3 ? power(value) : grouped(Number(value.toPrecision(4)));
}

/** @param {number} value */
const grouped = (value) => minus(value.toLocaleString('en', { maximumSignificantDigits: 15 }));

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** @param {string | number} exponent such as −7 */
const raised = (exponent) => String(exponent).replace('+', '').replace('-', '⁻').replace(/\d/g, (digit) => RAISED[Number(digit)]);

/** @param {number} value @returns {string} such as 1.2 · 10⁻⁷, or 10⁻⁶ where that is all */
function power(value) {
  const [mantissa, exponent] = value.toExponential(2).split('e');
  const ten = `10${raised(exponent)}`;
  if (Number(mantissa) === 1 && Number(`1e${exponent}`) === value) return ten;
  return `${minus(mantissa)}${FIRM}·${FIRM}${ten}`;
}

/** @param {any} value @param {string} [format] @returns {string} */
export function formatted(value, format) {
  if (typeof value !== 'number') return value === null || value === undefined ? '–' : String(value);
  if (format === 'percent') return `${digits(100 * value)}${NARROW}%`;
  if (format === 'integer') return grouped(Math.round(value));
  if (format === 'scientific') {
    if (Math.abs(value) >= 1e9) return power(value);
    return Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3 ? digits(value) : digits(Number(value.toPrecision(3)));
  }
  return digits(value);
}

/** A number with its power of ten, or a division, which no line may break. */
const WHOLE = /([−-]?[\d.]+\s·\s10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|1\/√?[\w√]+)/u;

/** Powers of ten as programs write them, 1e-06, as people do. @param {string} text */
const tidy = (text) => text.replace(/(?<![\w.])([−-]?\d(?:\.\d+)?)e([+-]\d{2,3})(?!\w)/g, (_, mantissa, exponent) => {
  const ten = `10${raised(Number(exponent))}`;
  return mantissa === '1' ? ten : `${minus(mantissa)}${FIRM}·${FIRM}${ten}`;
});

/** @param {string} text @returns {(string | Node)[]} the same text, in parts that lines break between */
export const unbroken = (text) => tidy(text).split(WHOLE).map((part, i) => (i % 2 ? el('span', { class: 'whole' }, part) : part));

/** Keeps what no line may break together, in the sentences that stand in the page. @param {Element} root */
export function keepWhole(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const found = [];
  while (walker.nextNode()) {
    const text = /** @type {Text} */ (walker.currentNode);
    if (WHOLE.test(text.data) && !text.parentElement?.closest('math, .lab, output, textarea, script, option')) found.push(text);
  }
  for (const text of found) text.replaceWith(...unbroken(text.data));
}

/** Who expects what a check compares with; a number that was measured too was found by another way. */
const EXPECTS = { theory: 'theory', published: 'published', estimate: 'estimate', measured: 'found by another way' };

/** Checks that hold which are seen at once; the others are a click away. What does not hold is always seen. */
const SEEN = 4;

/**
 * @param {Check[]} checks
 * @param {string[]} shown ids of the series in view
 * @param {boolean} open whether all were in view before
 * @returns {HTMLElement[]}
 */
export function checkRows(checks, shown, open) {
  const told = checks.filter(({ about }) => about === null || shown.includes(about));
  const [failing, holding] = [told.filter(({ holds }) => !holds), told.filter(({ holds }) => holds)];
  const seen = holding.length + failing.length > SEEN + 1 ? Math.max(0, SEEN - failing.length) : holding.length;
  const rows = [...failing, ...holding.slice(0, seen)].map(checkRow);
  const rest = holding.slice(seen).map(checkRow);
  if (!rest.length) return rows;
  return [...rows, el('li', { class: 'more' }, el('details', open ? { open: '' } : {}, el('summary', {}, `${rest.length} more that hold`), el('ul', { class: 'checks' }, ...rest)))];
}

/** @param {Check} check */
function checkRow(check) {
  return el('li', {
    class: check.holds ? 'holds' : 'fails', 'data-check': check.name, 'data-holds': String(check.holds),
    'data-measured': String(check.measured), 'data-expected': String(check.expected),
  },
  el('span', { class: 'verdict' }, check.holds ? 'holds' : 'does not hold'), el('span', { class: 'what' }, ...unbroken(check.name)),
  el('span', {}, 'measured ', el('b', {}, digits(check.measured))),
  el('span', {}, `${EXPECTS[check.origin]} ${SIGN[check.relation]} `, el('b', {}, digits(check.expected)), check.tolerance ? ` ± ${digits(check.tolerance)}` : ''));
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
    if (!mine(node)) continue;
    // A number is not broken, a sentence may be.
    node.classList.toggle('words', typeof fact(result.facts, node.dataset.fact ?? '') === 'string');
    node.replaceChildren(...unbroken(formatted(fact(result.facts, node.dataset.fact ?? ''), node.dataset.format)));
  }
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll('[data-count]'))) {
    if (mine(node)) node.textContent = numbered(node, fact(result.facts, node.dataset.count ?? ''));
  }
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll('[data-if], [data-unless]'))) {
    if (mine(node)) node.hidden = !stands(node, result.facts);
  }
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll('[data-table]'))) {
    if (mine(node)) node.replaceChildren(table(fact(result.facts, node.dataset.table ?? '') ?? [], `${section.querySelector('h2')?.textContent ?? ''}: ${(node.dataset.table ?? '').replace(/[._]/g, ' ')}`));
  }
}

/** @param {any} value @returns {boolean} neither none, nor zero, nor empty */
const truthy = (value) => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** Whether what data-if and data-unless ask for is so. @param {HTMLElement} node @param {Record<string, any>} facts */
function stands(node, facts) {
  const { if: wanted, unless } = node.dataset;
  return (wanted === undefined || truthy(fact(facts, wanted))) && (unless === undefined || !truthy(fact(facts, unless)));
}

/**
 * The words that go with a count: data-one for a single thing, else those that stand there.
 * @param {HTMLElement} node @param {any} count
 */
function numbered(node, count) {
  node.dataset.many ??= node.textContent ?? '';
  return (count === 1 ? node.dataset.one : node.dataset.many) ?? '';
}

/** @param {Record<string, any>[]} rows @param {string} label what a reader who does not see it hears */
function table(rows, label) {
  const heads = Object.keys(rows[0] ?? {});
  // A column of numbers stands to the right, its head above it.
  const numbers = heads.map((head) => rows.some((row) => typeof row[head] === 'number') && rows.every((row) => typeof row[head] === 'number' || row[head] === null));
  const kind = (/** @type {number} */ i) => (numbers[i] ? 'number' : null);
  return el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, el('table', {},
    el('thead', {}, el('tr', {}, ...heads.map((head, i) => el('th', { scope: 'col', class: kind(i) }, ...unbroken(head))))),
    el('tbody', {}, ...rows.map((row) => el('tr', {}, ...heads.map((head, i) => el('td', { class: kind(i) }, ...unbroken(formatted(row[head])))))))));
}
