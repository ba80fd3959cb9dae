/** Which attention of a model is shown, where it has several: the encoder's, the decoder's, or the one between them. */
import { el } from './dom.js';

/** @type {Record<string, [string, string]>} */
const WORDS = {
  'encoder.self': ['Encoder', 'the source looks at itself'],
  'decoder.self': ['Decoder', 'the target looks at itself'],
  'decoder.cross': ['Cross', 'the target looks at the source'],
};

let switches = 0;

export class GroupSwitch {
  /** @param {HTMLElement} root @param {(group: string) => void} onChoose */
  constructor(root, onChoose) {
    this.root = root;
    switches += 1;
    this.name = `group-${switches}`;
    this.choices = el('span', { class: 'choices' });
    root.append(el('legend', { class: 'unseen' }, 'Attention shown'), this.choices);
    this.choices.addEventListener('change', (event) => onChoose(/** @type {HTMLInputElement} */ (event.target).value));
  }

  /** @param {string[]} groups @param {string} shown */
  show(groups, shown) {
    this.root.hidden = groups.length < 2;
    if (this.choices.dataset.groups !== groups.join()) {
      this.choices.dataset.groups = groups.join();
      this.choices.replaceChildren(...groups.map((group) => el('label', { title: WORDS[group][1] },
        el('input', { type: 'radio', name: this.name, value: group }), el('span', {}, WORDS[group][0]))));
    }
    const radio = /** @type {HTMLInputElement | null} */ (this.choices.querySelector(`input[value="${shown}"]`));
    if (radio) radio.checked = true;
  }
}
