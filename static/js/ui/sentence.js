/** What is seen, in words. */
import { visible } from '../spans.js';
import { el, role, word } from './dom.js';
import { counted, percent } from './format.js';

/** @typedef {import('../types.js').CompareAnswer} CompareAnswer */

/**
 * @param {{row: ArrayLike<number>, labels: {queries: string[], keys: string[]}, query: number, key: number, head: string, heads: number,
 *   counts: string}} seen
 * @returns {(Node | string)[]}
 */
export function lookSentence({ row, labels, query, key, head, heads, counts }) {
  const order = Array.from(row, (weight, index) => ({ weight, index })).sort((a, b) => b.weight - a.weight);
  const [most, ...rest] = order;
  const then = rest.slice(0, 3).filter(({ weight }) => weight >= 0.005);
  const parts = [
    role('query', labels.queries[query]), ' looks most at ',
    most.index === key ? role('key', labels.keys[most.index]) : el('b', {}, word(labels.keys[most.index])), ' ', el('b', {}, most.weight.toFixed(2)),
    ' in ', el('b', {}, head),
  ];
  then.forEach(({ weight, index }, i) => parts.push(i ? ', ' : ' · then ', word(labels.keys[index]), ` ${weight.toFixed(2)}`));
  if (most.index !== key && !then.some(({ index }) => index === key)) {
    parts.push(' · ', role('key', labels.keys[key]), ` ${row[key].toFixed(2)}`);
  }
  parts.push(` · ${counts}, ${counted(heads, 'head')}`);
  return parts;
}

/** @param {string} words */
const planWords = (words) => (words === 'the model\'s own' ? 'as trained' : words
  .replace(/ at encoder\.self\.\*/g, ' in the encoder').replace(/ at decoder\.self\.\*/g, ' in the decoder')
  .replace(/ at decoder\.cross\.\*/g, ' in the cross-attention'));

/** @param {CompareAnswer} answer @param {string[]} titles */
function movedSentence(answer, titles) {
  const tv = el('b', {}, percent(answer.overall.tv));
  if (answer.same_weights) {
    return ['Same weights, ', el('b', {}, planWords(answer.a.plan_words)), ' against ', el('b', {}, planWords(answer.b.plan_words)), ': on average ', tv, ' of each row’s attention moved'];
  }
  return [`${titles.join(' beside ')}: word by word, their mean attention maps differ by `, tv];
}

/** @param {CompareAnswer} answer */
function outputSentence(answer) {
  if (!answer.readout) return [];
  if (answer.readout.kind === 'embedding') {
    return ['; the sentence vector keeps a cosine of ', el('b', {}, answer.readout.cosine.toFixed(2))];
  }
  const [a, b] = [answer.readout.a[0], answer.readout.b[0]];
  const next = a.id === b.id ? [' (still ', el('b', {}, visible(a.text)), ' first)']
    : [' (', el('b', {}, visible(a.text)), ' became ', el('b', {}, visible(b.text)), ')'];
  return ['; ', el('b', {}, percent(answer.readout.tv)), ' of the next-token probability moved', ...next];
}

/**
 * @param {CompareAnswer} answer
 * @param {{titles: string[], headA: string, headB: string, query: string, key: string, weightA: number, weightB: number | null}} pair
 * @returns {(Node | string)[]}
 */
export function changeSentence(answer, { titles, headA, headB, query, key, weightA, weightB }) {
  const where = headA === headB ? headA : `${headA} and ${headB}`;
  const pair = weightB === null
    ? [' In ', el('b', {}, headA), ' ', role('query', query), ' → ', role('key', key), ' is ', el('b', {}, weightA.toFixed(2)), ' in A; B has no such pair.']
    : [' In ', el('b', {}, where), ' ', role('query', query), ' → ', role('key', key), ' goes from ', el('b', {}, weightA.toFixed(2)), ' to ', el('b', {}, weightB.toFixed(2)), '.'];
  return [...movedSentence(answer, titles), ...outputSentence(answer), '.', ...pair];
}
