/** Numbers as pages print them and people write them. */

/**
 * A number as the page prints it: with a minus sign, which is as wide as a plus, and not a hyphen.
 * @param {string} text
 */
export const minus = (text) => text.replace(/-/g, '−');

/** @type {Record<string, string>} */
const LOWERED = Object.fromEntries([...'⁰¹²³⁴⁵⁶⁷⁸⁹'].map((raised, digit) => [raised, String(digit)]).concat([['⁻', '-']]));

/**
 * A number as people and this page write it: 1,000 or 1 000, −5, 1e3, 1.2 · 10⁻⁷.
 * @param {string} text
 * @returns {number | null} null where it is none
 */
export function numberOf(text) {
  const plain = text.trim().replaceAll('−', '-').replace(/^10(?=[⁻⁰¹²³⁴⁵⁶⁷⁸⁹])/, '1 · 10').replace(/\s?[·×]\s?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/, (_, raised) => `e${[...raised].map((one) => LOWERED[one]).join('')}`);
  const grouped = /^[-+]?\d{1,3}([,\u0020\u00a0\u2009\u202f])\d{3}(\1\d{3})*(\.\d+)?$/.test(plain) ? plain.replace(/[,\u0020\u00a0\u2009\u202f]/g, '') : plain;
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(grouped) && Number.isFinite(Number(grouped)) ? Number(grouped) : null;
}
