/** Query, key and their products, component by component. */
import { shape } from './svg.js';

/**
 * @param {SVGElement} svg emptied and filled
 * @param {{q: number[], k: number[], products: number[]}} pair
 * @param {{width: number, height: number}} options
 */
export function drawPairBars(svg, { q, k, products }, { width, height }) {
  svg.replaceChildren();
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const top = 34;
  const pitch = (height - top) / q.length;
  const shared = Math.max(...q.map(Math.abs), ...k.map(Math.abs)) || 1;
  const own = Math.max(...products.map(Math.abs)) || 1;
  const column = width / 3;
  /** @type {[string, number[], number, string][]} */
  const columns = [['q', q, shared, 'query'], ['k', k, shared, 'key'], ['q × k', products, own, 'product']];
  columns.forEach(([name, values, most, role], i) => {
    const middle = column * (i + 0.5);
    const reach = column / 2 - 4;
    svg.append(
      shape('text', { x: middle, y: 12, 'text-anchor': 'middle', class: `bar-title ${role}` }, name),
      shape('text', { x: middle, y: 25, 'text-anchor': 'middle', class: 'bar-scale' }, `±${most.toPrecision(2)}`),
      shape('line', { x1: middle, x2: middle, y1: top - 4, y2: height, class: 'bar-zero' }));
    values.forEach((value, n) => {
      const length = (Math.abs(value) / most) * reach;
      const bar = shape('rect', {
        x: value < 0 ? middle - length : middle, y: top + n * pitch + pitch * 0.15, width: length,
        height: pitch * 0.7, class: `component ${role}${value < 0 ? ' negative' : ''}`,
      });
      bar.append(shape('title', {}, `${name}[${n}] = ${value.toPrecision(4)}`));
      svg.append(bar);
    });
  });
}
