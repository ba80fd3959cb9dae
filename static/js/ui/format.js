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

/** @param {number} count @param {string} noun */
export const counted = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
