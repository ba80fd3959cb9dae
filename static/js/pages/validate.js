/** A link may name what this model or text does not have: it is said, and something else is shown. */
import { nothing } from '../state.js';
import { headName } from '../ui/format.js';

/**
 * @param {import('../types.js').State} state mended in place
 * @param {import('../tracedata.js').TraceData} data
 * @returns {string[]} what was wrong, in words
 */
export function mend(state, data) {
  const { zoom } = state;
  const [queries, keys] = [data.axes.queries.length, data.axes.keys.length];
  const told = [];
  if (state.pick.stack !== null && !data.groups.includes(state.pick.stack)) {
    told.push(`${data.title} has no attention called ${state.pick.stack}. Its ${data.group} is shown.`);
    state.pick = nothing();
  }
  const { pick } = state;
  const [query, key] = [pick.query ?? 0, pick.key ?? 0];
  if (pick.layer !== null && pick.head !== null && !data.has({ layer: pick.layer, head: pick.head })) {
    told.push(`There is no ${headName({ layer: pick.layer, head: pick.head }, data.prefix)}: ${data.title} has layers 0 to ${data.layers - 1} and heads 0 to ${data.heads - 1}. Another head is shown.`);
    state.pick = { ...nothing(), stack: pick.stack };
  } else if (query >= queries || key >= keys) {
    const [index, count] = query >= queries ? [query, queries] : [key, keys];
    told.push(`There is no token ${index}: the text has ${count}, counted from 0. Another pair is shown.`);
    state.pick = { ...pick, query: null, key: null };
  }
  if (zoom && (zoom.rows[1] > queries || zoom.cols[1] > keys)) {
    told.push(`The link enlarges tokens beyond the text's ${Math.max(queries, keys)}. The whole text is shown.`);
    state.zoom = null;
  }
  return told;
}
