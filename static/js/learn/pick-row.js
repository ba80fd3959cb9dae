/**
 * Which head, and which tokens of a text, a section looks at: two lists, and rows of tokens with their weights.
 * What is picked in one section of the page is picked in all of them.
 */
import { el, word } from '../ui/dom.js';

/** @typedef {import('./lab.js').Lab} Lab */
/** @typedef {import('./types.js').Result} Result */

const SHARED = ['model', 'text', 'layer', 'head', 'query', 'key'];
const PICKED = 'row-picked';
const ROLES = { query: 'asks', key: 'is asked' };

/** @param {HTMLElement} root data-pick names the rows of tokens: "query key" @param {Lab} lab */
export default function pickRow(root, lab) {
  root.classList.add('pick-row');
  const layer = choice('layer', lab);
  const head = choice('head', lab);
  const rows = /** @type {('query' | 'key')[]} */ ((root.dataset.pick ?? '').split(' ').filter(Boolean)).map((name) => tokens(name, lab));
  root.append(el('div', { class: 'pick-head' }, layer.element, head.element), ...rows.map(({ element }) => element));
  let first = true;
  lab.onResult((result) => {
    layer.show(result.facts.layers, result.facts.layer);
    head.show(result.facts.heads, result.facts.head);
    for (const row of rows) row.show(result);
    // What a section begins with is nobody's choice yet.
    if (!first || differs(result.parameters, lab.initial)) document.dispatchEvent(new CustomEvent(PICKED, { detail: result.parameters }));
    first = false;
  });
  document.addEventListener(PICKED, (event) => follow(lab, /** @type {CustomEvent} */ (event).detail));
}

/** @param {Record<string, any>} some @param {Record<string, any>} others */
const differs = (some, others) => SHARED.some((name) => name in some && some[name] !== others[name]);

/** Another section's choice becomes this one's; the address stays that section's. @param {Lab} lab @param {Record<string, any>} picked */
function follow(lab, picked) {
  const changes = Object.fromEntries(SHARED.filter((name) => name in picked && name in lab.parameters && picked[name] !== lab.parameters[name])
    .map((name) => [name, picked[name]]));
  if (!Object.keys(changes).length) return;
  const { hash } = location;
  void lab.set(changes);
  if (location.hash !== hash) history.replaceState(null, '', hash || location.pathname);
}

/** @param {'layer' | 'head'} name @param {Lab} lab */
function choice(name, lab) {
  const input = el('select', { 'data-pick': name });
  input.addEventListener('change', () => { void lab.set({ [name]: Number(input.value) }); });
  return {
    element: el('label', {}, `${name} `, input),
    /** @param {number} count @param {number} chosen */
    show(count, chosen) {
      if (input.options.length !== count) input.replaceChildren(...Array.from({ length: count }, (_, i) => el('option', { value: i }, String(i))));
      input.value = String(chosen);
    },
  };
}

/** @param {'query' | 'key'} name @param {Lab} lab */
function tokens(name, lab) {
  const buttons = el('div', { class: 'pick-tokens', role: 'group', 'aria-label': `${name}: the token that ${ROLES[name]}` });
  return {
    element: el('div', {}, el('p', { class: 'soft' }, el('b', { class: `role ${name}` }, name), `: the token that ${ROLES[name]}`), buttons),
    /** @param {Result} result */
    show({ facts }) {
      const held = buttons.contains(document.activeElement);
      const chosen = facts[`${name}_index`];
      const made = /** @type {string[]} */ (facts.tokens).map((text, i) => button(name, text, i === chosen, name === 'key' ? facts.weights[i] : null));
      made.forEach((one, i) => one.addEventListener('click', () => { void lab.set({ [name]: i }); }));
      buttons.replaceChildren(...made);
      if (held) made[chosen].focus();
    },
  };
}

/** @param {string} name @param {string} text @param {boolean} chosen @param {number | null} weight drawn as a bar below the token */
function button(name, text, chosen, weight) {
  const made = el('button', { type: 'button', class: name, 'aria-pressed': String(chosen) }, word(text));
  if (weight === null) return made;
  const bar = el('span', { class: 'weight' });
  bar.style.width = `${100 * weight}%`;
  made.title = `weight ${weight.toPrecision(4)}`;
  made.append(bar);
  return made;
}
