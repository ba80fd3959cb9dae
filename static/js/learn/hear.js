/** A button that plays the recording which a lab's model heard. */
import { fetchRecording } from '../api.js';
import { el } from '../ui/dom.js';
import { Player } from '../ui/player.js';

/** @param {HTMLElement} root @param {import('./lab.js').Lab} lab */
export default function hear(root, lab) {
  const button = el('button', { type: 'button', class: 'run-lab' }, 'Play');
  const words = el('p', { class: 'lab-problem', role: 'alert' });
  button.hidden = words.hidden = true;
  const refuse = (/** @type {string} */ sentence) => {
    words.textContent = sentence;
    words.hidden = false;
  };
  const player = new Player(button, refuse);
  let held = '';
  root.append(button, words);
  lab.onResult(async ({ facts }) => {
    if (facts.recording === held) return;
    held = facts.recording;
    button.hidden = !held;
    player.stop();
    try {
      if (held) player.hold(await fetchRecording(held));
    } catch (error) {
      refuse(/** @type {Error} */ (error).message);
    }
  });
}
