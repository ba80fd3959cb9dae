/** Pictures are drawn again when the theme or the width changes, or when the overview is enlarged. */
import { wireTheme } from '../ui/theme.js';

/**
 * @param {HTMLElement} stage
 * @param {{redraw: () => void, recolour: () => void}} on
 */
export function wireLayout(stage, { redraw, recolour }) {
  wireTheme(recolour);
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    requestAnimationFrame(redraw);
  });
  stage.addEventListener('click', (event) => {
    const button = /** @type {Element} */ (event.target).closest('.enlarge');
    if (!button) return;
    const large = button.closest('.column')?.classList.toggle('enlarged');
    button.textContent = large ? 'Shrink' : 'Enlarge';
    redraw();
  });
}
