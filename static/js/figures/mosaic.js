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
 * @param {ArrayLike<number>} data
 * @param {number} offset
 * @param {number} cols
 * @param {[number, number]} rowSpan
 * @param {[number, number]} colSpan
 */
function brightest(data, offset, cols, [r0, r1], [c0, c1]) {
  let most = 0;
  for (let r = r0; r < r1; r += 1) {
    for (let c = c0; c < c1; c += 1) most = Math.max(most, data[offset + r * cols + c]);
  }
  return most;
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
  for (let index = 0; index < layers * heads; index += 1) {
    for (let y = 0; y < cell.height; y += 1) {
      for (let x = 0; x < cell.width; x += 1) {
        pixels[y * cell.width + x] = colours[brightest(tensor.data, index * rows * cols, cols, rowSpans[y], colSpans[x])];
      }
    }
    const layer = firstLayer + Math.floor(index / heads);
    context.putImageData(tile, (index % heads) * (cell.width + gap), layer * (cell.height + gap));
  }
}
