/** What stands around a lab: its settings as a link and as a file name, what they mean, and what to try instead. */
import { el } from '../ui/dom.js';
import { known } from './models.js';

/** @typedef {Record<string, any>} Values */

/** @param {Values} parameters @param {Values} initial @returns {string} those that differ, as a query */
export function changedOf(parameters, initial) {
  const changed = Object.entries(parameters).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(initial[name]));
  return new URLSearchParams(changed.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])).toString();
}

/** @param {string} text what code looks like stands between backticks @returns {(string | Node)[]} */
const coded = (text) => text.split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));

/** @param {import('./controls.js').Control[]} controls @returns {HTMLElement[]} what each setting means, for whoever asks */
export function helpFor(controls) {
  const told = controls.filter(({ help }) => help);
  if (!told.length) return [];
  return [el('details', { class: 'settings' }, el('summary', {}, 'what the settings mean'),
    el('dl', {}, ...told.flatMap(({ title, help }) => [el('dt', {}, title), el('dd', {}, ...coded(help))])))];
}

/** @param {string} text @returns {Promise<boolean>} whether it is in the clipboard */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* not allowed, or a page without https: by the older way */ }
  const box = el('textarea', { class: 'unseen', 'aria-hidden': 'true' });
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}

/** @param {string} href @param {() => string} address @returns {HTMLAnchorElement} a link to the settings, which copies itself */
export function sharing(href, address) {
  const words = 'link to these settings';
  const link = el('a', { class: 'here', href, 'aria-live': 'polite' }, words);
  link.addEventListener('click', async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.replaceState(history.state, '', address());
    link.textContent = await copied(location.href) ? 'copied' : 'it is in the address bar: copy it there';
    window.setTimeout(() => { link.textContent = words; }, 3000);
  });
  return link;
}

/** @param {string} lab @param {string} series @param {Values} parameters */
export function asFile(lab, series, parameters) {
  const { model, layer, head } = parameters;
  const place = `${typeof layer === 'number' ? `L${layer}` : ''}${typeof head === 'number' ? `H${head}` : ''}`;
  const parts = [lab, ...(series === lab ? [] : [series]), ...(typeof model === 'string' ? [model] : []), ...(place ? [place] : [])];
  return { stem: parts.join('-').replace(/[^\w.-]+/g, '-'), about: { lab, parameters } };
}

/** @param {string} sentence why a run was refused @param {string[]} picked @returns {string[]} the places that it names */
export const lost = (sentence, picked) => picked.filter((name) => new RegExp(`\\b${name}( is)? [−-]?\\d`, 'i').test(sentence));

const UNREAD = /\[UNK\]|unknown|does not know/i;

/**
 * @param {import('./types.js').Result} result
 * @param {Values} parameters
 * @param {import('./controls.js').Control | undefined} control the one of the text
 * @returns {Promise<string | null>} the text that the model was made for, where it cannot read the one it got
 */
export async function exampleFor(result, parameters, control) {
  if (!control || !result.notes.some((note) => UNREAD.test(note))) return null;
  const found = (await known().catch(() => [])).find(({ id }) => id === parameters.model);
  return found?.example && found.example !== parameters.text ? found.example : null;
}
