/** What cells and groups stand for: the tokens of a pooled cell, the names of a model's kinds of attention. */

/**
 * @param {number} count source tokens
 * @param {number} cells cells drawn
 * @param {number} cell
 * @returns {[number, number]} the tokens, half open, that a pooled cell covers
 */
export function covered(count, cells, cell) {
  return [Math.floor((cell * count) / cells), Math.ceil(((cell + 1) * count) / cells)];
}

/** How heads are named where a model has several kinds of attention. @type {Record<string, string>} */
const PREFIX = { 'encoder.self': 'enc ', 'decoder.self': 'dec ', 'decoder.cross': 'cross ' };

/** @param {string} group stack and kind @param {boolean} several whether the model has other groups */
export const prefixOf = (group, several) => (several ? PREFIX[group] : '');
