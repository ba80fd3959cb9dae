/** The decoder's text, beside an encoder: typed, or written by the model. */
import { find } from './dom.js';
import { counted } from './format.js';
import { wireTextBox } from './textbox.js';

export class TargetBox {
  /** @param {() => void} onRun */
  constructor(onRun) {
    this.element = find(document, '[data-part="target"]');
    this.told = find(document, '[data-testid="written"]');
    this.box = wireTextBox(find(this.element, '[data-testid="target"]'), onRun);
  }

  /** @returns {string} empty: the model is to write it */
  value() {
    return this.box.value();
  }

  /** @param {string} text */
  set(text) {
    this.box.set(text);
  }

  /** Says what the model wrote, where nothing was given. @param {import('../types.js').TraceAnswer} answer @param {boolean} shared B reads it too */
  written({ written, tokens }, shared) {
    const who = shared ? 'A’s model wrote the target, which B reads too' : 'The model wrote the target';
    const text = tokens.filter(({ special }) => !special).map(({ text: part }) => part).join('').trim();
    this.told.hidden = !written;
    this.told.textContent = text ? `${who}: “${text}”`
      : `The model wrote no text: ${counted(tokens.length, 'special token')} ${tokens.length === 1 ? 'is' : 'are'} its target.`;
  }
}
