/** One floating box that follows the pointer. */
import { el } from './dom.js';

class Tooltip {
  constructor() {
    this.box = el('div', { class: 'tooltip', 'data-testid': 'tooltip', role: 'presentation', hidden: true });
    document.body.append(this.box);
  }

  /**
   * @param {number} x client pixels
   * @param {number} y
   * @param {...(Node | string)} content
   */
  show(x, y, ...content) {
    this.box.replaceChildren(...content);
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const left = Math.max(4, Math.min(x + 14, document.documentElement.clientWidth - width - 4));
    const top = y + 18 + height > window.innerHeight ? y - height - 12 : y + 18;
    this.box.style.transform = `translate(${left}px, ${Math.max(4, top)}px)`;
  }

  hide() {
    this.box.hidden = true;
  }
}

/** @type {Tooltip | null} */
let shared = null;

/** @returns {Tooltip} the page's only one */
export function tooltip() {
  shared ??= new Tooltip();
  return shared;
}
