/** Numbers and heads in words. */
import { prefixOf } from '../cells.js';

/**
 * @param {number} weight 0 to 1
 * @returns {string} three decimals, or two significant digits where those would all be zero
 */
export function weightText(weight) {
  if (weight === 0) return '0';
  return weight < 0.0005 ? weight.toExponential(1) : weight.toFixed(3);
}

/** @param {number} share 0 to 1 */
export const percent = (share) => (share > 0 && share < 0.005 ? '<1 %' : `${Math.round(share * 100)} %`);

/** @param {import('../types.js').HeadRef} ref @param {string} [prefix] */
export const headName = ({ layer, head }, prefix = '') => `${prefix}L${layer}H${head}`;

/** @param {string} site such as decoder.self.3 @param {number} head @param {boolean} several */
export const siteHead = (site, head, several) => headName({ layer: layerOf(site), head }, prefixOf(site.replace(/\.\d+$/, ''), several));

/** @param {string} site */
export const layerOf = (site) => Number(site.split('.').at(-1));

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

/** @param {number} count @param {string} noun */
export const counted = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
