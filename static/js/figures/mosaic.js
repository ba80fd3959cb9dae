/** All heads at once: one small picture a head, layers down, heads across. */

/**
 * Source indices covered by each pixel: nearest when enlarging, all of them when reducing, so that a thin
 * bright line is never lost.
 * @param {number} count source cells
 * @param {number} pixels
 * @returns {[number, number][]} half-open
 */
export function coverage(count, pixels) {
  return Array.from({ length: pixels }, (_, p) => {
    const first = Math.floor((p * count) / pixels);
    return [first, Math.max(first + 1, Math.ceil(((p + 1) * count) / pixels - 1e-9))];
  });
}

/**
 * The largest value in each span of one side of a picture.
 * @param {ArrayLike<number>} from
 * @param {Uint8Array} to lines × spans, filled here
 * @param {[number, number][]} spans
 * @param {{lines: number, line: number, step: number, offset: number, toLine: number, toStep: number}} walk distances
 *   between lines, and between the values of a line
 */
function brightest(from, to, spans, { lines, line, step, offset, toLine, toStep }) {
  spans.forEach(([first, last], span) => {
    for (let i = 0; i < lines; i += 1) {
      let most = 0;
      for (let j = first; j < last; j += 1) {
        const value = from[offset + i * line + j * step];
        if (value > most) most = value;
      }
      to[i * toLine + span * toStep] = most;
    }
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import('../types.js').Tensor} tensor uint8 [layers, heads, rows, cols]
 * @param {{cell: {width: number, height: number}, gap: number, colours: Uint32Array, firstLayer?: number}} options device pixels
 */
export function drawMosaic(context, tensor, { cell, gap, colours, firstLayer = 0 }) {
  const [layers, heads, rows, cols] = tensor.shape;
  const [rowSpans, colSpans] = [coverage(rows, cell.height), coverage(cols, cell.width)];
  const tile = new ImageData(cell.width, cell.height);
  const pixels = new Uint32Array(tile.data.buffer);
  const [narrow, small] = [new Uint8Array(rows * cell.width), new Uint8Array(cell.height * cell.width)];
  for (let index = 0; index < layers * heads; index += 1) {
    brightest(tensor.data, narrow, colSpans, { lines: rows, line: cols, step: 1, offset: index * rows * cols, toLine: cell.width, toStep: 1 });
    brightest(narrow, small, rowSpans, { lines: cell.width, line: 1, step: cell.width, offset: 0, toLine: 1, toStep: cell.width });
    for (let i = 0; i < pixels.length; i += 1) pixels[i] = colours[small[i]];
    const layer = firstLayer + Math.floor(index / heads);
    context.putImageData(tile, (index % heads) * (cell.width + gap), layer * (cell.height + gap));
  }
}
