/** The steps of a block as buttons: what is on the stream stands left, what is on a branch right of it. */
import { el } from '../ui/dom.js';
import { digits } from './answers.js';

/** @typedef {{step: string, what: string, branch: boolean, shape: string, norm: number, spread: number}} Step */

/** @param {HTMLElement} root @param {import('./lab.js').Lab} lab */
export default function blockWalk(root, lab) {
  root.classList.add('block-walk');
  lab.onResult(({ facts }) => {
    const held = root.contains(document.activeElement);
    const longest = Math.max(.../** @type {Step[]} */ (facts.steps).map(({ norm }) => norm));
    const buttons = /** @type {Step[]} */ (facts.steps).map((step, i) => button(step, i === facts.chosen_step, longest, () => { void lab.set({ step: i }); }));
    root.replaceChildren(el('ol', { 'aria-label': 'Steps of the block' }, ...buttons.map((one) => el('li', {}, one))));
    if (held) buttons[facts.chosen_step].focus();
  });
}

/** @param {Step} step @param {boolean} chosen @param {number} longest @param {() => void} choose */
function button(step, chosen, longest, choose) {
  const bar = el('span', { class: 'bar' });
  bar.style.width = `${100 * step.norm / longest}%`;
  const made = el('button', { type: 'button', class: step.branch ? 'branch' : 'stream', 'aria-pressed': String(chosen) },
    el('span', { class: 'name' }, el('b', {}, step.step), el('span', { class: 'soft' }, step.what)),
    el('span', { class: 'shape' }, step.shape),
    el('span', { class: 'norm' }, el('span', {}, `‖·‖ ${digits(step.norm)}`), el('span', { class: 'track', 'aria-hidden': 'true' }, bar)));
  made.addEventListener('click', choose);
  return made;
}
