/** A link may name what this model or text does not have: it is said, and something else is shown. */
import { nothing } from '../state.js';

/**
 * @param {import('../types.js').State} state mended in place
 * @param {import('../tracedata.js').TraceData} data
 * @returns {string[]} what was wrong, in words
 */
export function mend(state, data) {
  const { pick, zoom } = state;
  const tokens = data.tokens.length;
  const told = [];
  if (pick.layer !== null && pick.head !== null && !data.has({ layer: pick.layer, head: pick.head })) {
    told.push(`There is no L${pick.layer}H${pick.head}: ${data.title} has layers 0 to ${data.layers - 1} and heads 0 to ${data.heads - 1}. Another head is shown.`);
    state.pick = nothing();
  } else if (Math.max(pick.query ?? 0, pick.key ?? 0) >= tokens) {
    told.push(`There is no token ${Math.max(pick.query ?? 0, pick.key ?? 0)}: the text has ${tokens}, counted from 0. Another pair is shown.`);
    state.pick = { ...pick, query: null, key: null };
  }
  if (zoom && Math.max(zoom.rows[1], zoom.cols[1]) > tokens) {
    told.push(`The link enlarges tokens beyond the text's ${tokens}. The whole text is shown.`);
    state.zoom = null;
  }
  return told;
}
