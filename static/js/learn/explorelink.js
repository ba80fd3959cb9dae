/** "See it in a real model": a link that opens Explore in the state that a section names. */
import { encode, initial } from '../state.js';
import { fact } from './answers.js';

/**
 * @param {any} value
 * @param {Record<string, any>} facts
 * @returns {any} the value with every "$path" replaced by that fact
 */
function filled(value, facts) {
  if (typeof value === 'string' && value.startsWith('$')) return fact(facts, value.slice(1)) ?? null;
  if (Array.isArray(value)) return value.map((part) => filled(part, facts));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, filled(part, facts)]));
}

/**
 * @param {Element} section
 * @param {Record<string, any>} facts
 * @param {string} model the default one
 */
export async function link(section, facts, model) {
  for (const anchor of /** @type {NodeListOf<HTMLAnchorElement>} */ (section.querySelectorAll('a[data-explore]'))) {
    const wanted = filled(JSON.parse(anchor.dataset.explore ?? '{}'), facts);
    const base = initial(wanted.a?.model ?? model);
    const pick = { ...base.pick, ...wanted.pick, ...(wanted.pick ? { auto: false } : {}) };
    const state = { ...base, ...wanted, a: { ...base.a, ...wanted.a }, b: { ...base.b, ...(wanted.b ?? wanted.a) }, pick, text: wanted.text ?? '' };
    // Where it came from, for the way back.
    anchor.href = `/?from=${location.pathname.split('/').pop()}.${section.id}#${await encode(state)}`;
  }
}
