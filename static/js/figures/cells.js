/** One head's matrix on a canvas: stands in until Plotly is there, and hatches what the mask closes. */
import { TRANSFER, css, ramp } from '../colour.js';

/** @typedef {import('../types.js').Matrix} Matrix */

/**
 * @param {CanvasRenderingContext2D} context scaled so that one unit is one CSS pixel
 * @param {Matrix} matrix
 * @param {{width: number, height: number, transfer: import('../types.js').Transfer,
 *   palette: import('../types.js').Palette}} options
 */
export function drawCells(context, matrix, { width, height, transfer, palette }) {
  const colour = ramp(palette.panel, palette.deep);
  const gap = matrix.cols <= 64 && matrix.rows <= 64 ? 1 : 0;
  const [w, h] = [width / matrix.cols, height / matrix.rows];
  context.fillStyle = palette.line;
  context.fillRect(0, 0, width, height);
  for (let r = 0; r < matrix.rows; r += 1) {
    for (let c = 0; c < matrix.cols; c += 1) {
      context.fillStyle = css(colour(TRANSFER[transfer](matrix.data[r * matrix.cols + c])));
      context.fillRect(c * w + gap / 2, r * h + gap / 2, w - gap, h - gap);
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import('../types.js').Tensor} mask uint8 [rows, cols], 1 = open
 * @param {{width: number, height: number, palette: import('../types.js').Palette}} options
 */
export function drawHatch(context, mask, { width, height, palette }) {
  const [rows, cols] = mask.shape;
  const [w, h] = [width / cols, height / rows];
  const closed = new Path2D();
  for (let r = 0; r < rows; r += 1) {
    let start = -1;
    for (let c = 0; c <= cols; c += 1) {
      const open = c === cols || mask.data[r * cols + c];
      if (!open && start < 0) start = c;
      if (open && start >= 0) {
        closed.rect(start * w, r * h, (c - start) * w, h);
        start = -1;
      }
    }
  }
  context.save();
  context.fillStyle = palette.hatch;
  context.fill(closed);
  context.clip(closed);
  context.strokeStyle = palette.hatchLine;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = -height; x < width; x += 9) {
    context.moveTo(x, height);
    context.lineTo(x + height, 0);
  }
  context.stroke();
  context.restore();
}

/**
 * The mask in small.
 * @param {CanvasRenderingContext2D} context
 * @param {import('../types.js').Tensor} mask uint8 [rows, cols]
 * @param {{size: number, palette: import('../types.js').Palette}} options
 */
export function drawMask(context, mask, { size, palette }) {
  const [rows, cols] = mask.shape;
  const [w, h] = [size / cols, size / rows];
  const gap = Math.min(w, h) >= 3 ? 1 : 0;
  context.clearRect(0, 0, size, size);
  for (let r = 0; r < rows; r += 1) {
    for (let c = 0; c < cols; c += 1) {
      context.fillStyle = mask.data[r * cols + c] ? palette.accent : palette.hatch;
      context.fillRect(c * w, r * h, w - gap, h - gap);
    }
  }
}
