/** The colour scale, with numbers. */
import { TICKS, TRANSFER, css, ramp } from '../colour.js';
import { el, sharp } from './dom.js';
import { palette } from './theme.js';

const WIDTH = 180;

/**
 * @param {HTMLElement} slot emptied and filled
 * @param {import('../types.js').Transfer} transfer
 * @param {{to?: 'deep' | 'change' | 'shade', words?: string, width?: number, strength?: number}} [options] strength: how
 *   far along the ramp the whole weight lies
 */
export function drawLegend(slot, transfer, { to = 'deep', words = 'weight', width = WIDTH, strength = 1 } = {}) {
  const colours = palette();
  const colour = ramp(colours.panel, colours[to]);
  const canvas = el('canvas', { 'aria-hidden': 'true' });
  const context = sharp(canvas, width, 8);
  for (let x = 0; x < width; x += 1) {
    context.fillStyle = css(colour((strength * x) / (width - 1)));
    context.fillRect(x, 0, 1.5, 8);
  }
  const ticks = TICKS[transfer].map((weight) => {
    const tick = el('span', {}, String(weight));
    tick.style.left = `${TRANSFER[transfer](weight) * width}px`;
    return tick;
  });
  slot.replaceChildren(el('div', { class: 'legend', role: 'img', 'aria-label': `colour scale: ${words} from ${TICKS[transfer][0]} to 1` },
    el('span', { class: 'soft' }, words), el('span', { class: 'gradient' }, canvas, el('span', { class: 'ticks' }, ...ticks))));
}
