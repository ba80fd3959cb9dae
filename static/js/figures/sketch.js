/** A lab's series drawn plainly and at once: stands in until Plotly is there. */
import { ramp } from '../colour.js';
import { coloursOf, drawable, extent } from './series.js';

/** @typedef {import('../learn/types.js').Series} Series */
/** @typedef {{palette: import('../types.js').Palette, width: number, height: number}} Options */

const MARGIN = { left: 60, right: 16, top: 8, bottom: 44 };

/**
 * @param {CanvasRenderingContext2D} context one unit is one CSS pixel
 * @param {Series} series
 * @param {Options} options
 */
export function drawSketch(context, series, options) {
  const { palette, width, height } = options;
  context.clearRect(0, 0, width, height);
  context.font = '11px sans-serif';
  const box = { left: MARGIN.left, top: MARGIN.top, width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  if (series.kind === 'matrix') drawCells(context, series, box, palette);
  else drawLines(context, series, box, palette);
  context.fillStyle = palette.soft;
  context.textAlign = 'center';
  context.fillText(series.x.label, box.left + box.width / 2, height - 10);
  context.save();
  context.translate(14, box.top + box.height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(series.y.label, 0, 0);
  context.restore();
}

/** @typedef {{left: number, top: number, width: number, height: number}} Box */

/** @param {CanvasRenderingContext2D} context @param {import('../learn/types.js').Matrix} series @param {Box} box @param {import('../types.js').Palette} palette */
function drawCells(context, { values, diverging }, box, palette) {
  const [low, high] = extent(values.flat(), false) ?? [0, 1];
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const [up, cool, warm] = [palette.deep, palette.query, palette.key].map((to) => ramp(palette.panel, to));
  const image = new ImageData(Math.max(1, values[0]?.length ?? 1), Math.max(1, values.length));
  values.forEach((row, r) => row.forEach((value, c) => {
    const t = value === null ? 0 : diverging ? Math.abs(value) / most : Math.max(0, value) / (high || 1);
    const colour = (diverging ? (Number(value) < 0 ? warm : cool) : up)(Math.min(1, t));
    image.data.set([...colour, 255], 4 * (r * image.width + c));
  }));
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width, image.height];
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, box.left, box.top, box.width, box.height);
}

/** @param {CanvasRenderingContext2D} context @param {import('../learn/types.js').Chart} series @param {Box} box @param {import('../types.js').Palette} palette */
function drawLines(context, series, box, palette) {
  const { lines, x, y, kind } = series;
  const words = lines.some((line) => typeof line.x[0] === 'string');
  const place = (/** @type {import('../learn/types.js').Line} */ line, /** @type {number} */ i) => (words ? i : Number(line.x[i]));
  const across = extent(lines.flatMap((line) => line.x.map((_, i) => place(line, i))), x.log) ?? [0, 1];
  const up = extent(lines.flatMap((line) => line.y), y.log) ?? [0, 1];
  if (kind === 'bars' || y.zero) up[0] = Math.min(0, up[0]);
  const at = (/** @type {number} */ value, /** @type {[number, number]} */ [low, high], /** @type {boolean} */ log) => {
    const [v, a, b] = log ? [value, low, high].map(Math.log) : [value, low, high];
    return b > a ? (v - a) / (b - a) : 0.5;
  };
  context.strokeStyle = palette.line;
  context.strokeRect(box.left, box.top, box.width, box.height);
  const colours = coloursOf(lines.map(({ name }) => name), palette);
  lines.forEach((line, index) => {
    context.strokeStyle = colours[index].colour;
    context.lineWidth = 2;
    context.setLineDash(line.origin === 'theory' ? [6, 4] : []);
    context.beginPath();
    let pen = false;
    line.y.forEach((value, i) => {
      pen = pen && drawable(value, y.log) && drawable(place(line, i), x.log);
      if (!drawable(value, y.log) || !drawable(place(line, i), x.log)) return;
      const px = box.left + at(place(line, i), across, x.log) * box.width;
      const py = box.top + (1 - at(Number(value), up, y.log)) * box.height;
      if (kind !== 'lines') context.rect(px - 1, py - 1, 2, kind === 'bars' ? box.top + box.height - py : 2);
      else if (pen) context.lineTo(px, py);
      else context.moveTo(px, py);
      pen = true;
    });
    context.stroke();
  });
  context.setLineDash([]);
}
