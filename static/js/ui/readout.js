/** What the model makes of the text: next tokens, masked tokens, or how near each token is to the sentence. */
import { visible } from '../spans.js';
import { el, word } from './dom.js';
import { percent } from './format.js';

/** @typedef {import('../types.js').Prediction} Prediction */

/** Bars of a long text drawn in one go. */
const AT_ONCE = 64;

/** @param {Prediction[]} top @returns {HTMLElement} */
export function predictions(top) {
  return el('ol', { class: 'predictions' }, ...top.map(({ text, p }) => {
    const bar = el('span', { class: 'bar' });
    bar.style.width = `${100 * p}%`;
    return el('li', {}, word(visible(text), 'name'), el('span', { class: 'track' }, bar),
      el('span', { class: 'number' }, p.toFixed(3)));
  }));
}

/**
 * @param {number[]} similarity
 * @param {import('../types.js').Token[]} tokens
 */
function similarities(similarity, tokens) {
  const most = Math.max(...similarity.map(Math.abs), 1e-9);
  const bars = (/** @type {number} */ from) => similarity.slice(from, from + AT_ONCE).map((value, j) => {
    const i = from + j;
    const bar = el('span', { class: `bar${value < 0 ? ' negative' : ''}` });
    bar.style.height = `${(100 * Math.abs(value)) / most}%`;
    return el('li', { title: `${visible(tokens[i].text)}: ${value.toFixed(3)}` },
      el('span', { class: 'number' }, value.toFixed(2).replace(/^(-?)0\./, '$1.')), el('span', { class: 'stick' }, bar),
      el('span', { class: `name${tokens[i].special ? ' special' : ''}` }, visible(tokens[i].text)));
  });
  const list = el('ol', { class: 'similarities', style: `--count: ${similarity.length}` }, ...bars(0));
  if (similarity.length > AT_ONCE) more(list, bars, similarity.length);
  return list;
}

/**
 * The rest of a long list comes as its reader gets near its end.
 * @param {HTMLElement} list
 * @param {(from: number) => Node[]} bars
 * @param {number} count
 */
function more(list, bars, count) {
  let shown = AT_ONCE;
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    list.append(...bars(shown));
    shown += AT_ONCE;
    if (shown < count) watch.observe(/** @type {Element} */ (list.lastElementChild));
  }, { root: list, rootMargin: '0px 200px' });
  watch.observe(/** @type {Element} */ (list.lastElementChild));
}

/**
 * @param {HTMLElement} root emptied and filled
 * @param {import('../types.js').Readout | null} readout
 * @param {import('../types.js').Token[]} tokens
 */
export function showReadout(root, readout, tokens) {
  const title = (/** @type {string} */ text) => el('h3', {}, text);
  root.dataset.kind = readout?.kind ?? 'none';
  if (!readout) {
    root.replaceChildren(title('No readout'), el('p', { class: 'soft' }, 'This model was run without a prediction.'));
  } else if (readout.kind === 'logits') {
    root.replaceChildren(
      el('h3', {}, 'Next token after ', el('b', {}, visible(tokens[readout.position].text))),
      el('p', { class: 'soft' }, `probability; the ${readout.top.length} likeliest hold ${percent(readout.top.reduce((sum, { p }) => sum + p, 0))}`),
      predictions(readout.top));
  } else if (readout.kind === 'masked') {
    const parts = readout.positions.flatMap(({ position, top }) => [
      el('h3', {}, `Prediction for ${visible(tokens[position].text)} at place ${position}`), predictions(top)]);
    root.replaceChildren(...(parts.length ? parts : [title('Masked tokens'), el('p', { class: 'soft' }, 'The text has no masked token to predict: put the model’s mask token, such as [MASK], in place of one.')]));
  } else {
    root.replaceChildren(title('Each token’s output beside the sentence vector'),
      el('p', { class: 'soft' }, 'cosine; this model has no prediction head: it turns a text into one vector, the mean of its tokens’ outputs'),
      similarities(readout.similarity, tokens));
  }
}
