/** The controls over both columns: view and presets. */
import { el, find } from './dom.js';

/** @typedef {import('../presets.js').Preset} Preset */

export class Controls {
  /** @param {{onView: (view: 'one' | 'ab') => void, onPreset: (preset: Preset) => void}} on */
  constructor({ onView, onPreset }) {
    this.view = find(document, '[data-testid="view"]');
    this.select = /** @type {HTMLSelectElement} */ (find(document, '[data-testid="presets"]'));
    /** @type {Preset[]} */
    this.presets = [];
    this.view.addEventListener('click', (event) => {
      const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('[data-view-choice]'));
      if (button) onView(button.dataset.viewChoice === 'ab' ? 'ab' : 'one');
    });
    this.select.addEventListener('change', () => {
      const preset = this.presets[Number(this.select.value)];
      if (this.select.value && preset) onPreset(preset);
    });
  }

  /**
   * @param {Preset[]} presets
   * @param {import('../types.js').State} state
   */
  show(presets, state) {
    for (const button of this.view.querySelectorAll('button')) {
      button.setAttribute('aria-pressed', String(button.dataset.viewChoice === state.view));
    }
    const labels = presets.map(({ label }) => label).join();
    if (labels !== this.presets.map(({ label }) => label).join()) {
      this.select.replaceChildren(el('option', { value: '' }, 'Compare…'),
        ...presets.map(({ label }, i) => el('option', { value: i }, label)));
    }
    this.presets = presets;
    const same = (/** @type {Preset} */ preset) => state.view === 'ab'
      && JSON.stringify([preset.a, preset.b]) === JSON.stringify([state.a, state.b]);
    const chosen = presets.findIndex(same);
    this.select.value = chosen < 0 ? '' : String(chosen);
  }
}
