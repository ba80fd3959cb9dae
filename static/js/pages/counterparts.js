/** What in one column answers to a head or a pair in the other. */
import { layerOf } from '../ui/format.js';

/** @typedef {import('../types.js').HeadRef} HeadRef */
/** @typedef {import('../types.js').CompareAnswer} CompareAnswer */
/** @typedef {{query: number, key: number}} Pair */

/**
 * @param {import('../types.js').State} state
 * @param {CompareAnswer} comparison
 * @param {HeadRef} head of A
 * @param {string} site of A
 * @param {import('../tracedata.js').TraceData} data of B
 * @returns {HeadRef} B's own pick, else the same head of the same model, else the closest head
 */
export function counterpart(state, comparison, head, site, data) {
  if (state.pickB && data.has(state.pickB)) return state.pickB;
  if (state.a.model === state.b.model) return head;
  const closest = comparison.closest?.find(({ a, b }) => a.site === site && a.head === head.head && data.sites.some((own) => own.site === b.site));
  return closest ? { layer: layerOf(closest.b.site), head: closest.b.head } : { layer: 0, head: 0 };
}

/**
 * @param {CompareAnswer | null} comparison
 * @param {Pair} pair token indices
 * @param {'a' | 'b'} from
 * @param {'a' | 'b'} to
 * @returns {Pair | null} null where one of the two tokens has no partner
 */
export function alignedPair(comparison, pair, from, to) {
  const partner = (/** @type {number} */ index) => comparison?.alignment.find((entry) => entry[from].includes(index))?.[to][0];
  const [query, key] = [partner(pair.query), partner(pair.key)];
  return query === undefined || key === undefined ? null : { query, key };
}
