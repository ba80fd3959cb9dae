/** Plotly comes after the first picture: it is 4.8 MB, and a canvas can stand in for it. */
import { find } from './dom.js';

/** @type {Promise<any> | null} */
let loading = null;

/** @returns {Promise<any>} Plotly, once it is there; rejects when it cannot be had */
export function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = find(document, 'main').dataset.plotly ?? '';
    script.async = true;
    script.addEventListener('load', () => resolve(/** @type {any} */ (window).Plotly));
    script.addEventListener('error', () => {
      loading = null;
      reject(new Error('Plotly could not be loaded'));
    });
    document.head.append(script);
  });
  return loading;
}

/** @returns {any} Plotly if it is there already */
export const plotlyNow = () => /** @type {any} */ (window).Plotly ?? null;
