/** One head's matrix as a Plotly figure. */
import { stops } from '../colour.js';

/** @typedef {import('../types.js').Matrix} Matrix */
/** @typedef {import('../types.js').Palette} Palette */

/**
 * @param {Matrix} matrix
 * @param {import('../types.js').Tensor | null} mask uint8, 1 = open; closed cells are left out
 * @returns {Float32Array[]} rows, NaN where the mask is closed
 */
function rowsOf({ data, rows, cols }, mask) {
  const values = Float32Array.from(data);
  if (mask) for (let i = 0; i < values.length; i += 1) if (!mask.data[i]) values[i] = NaN;
  return Array.from({ length: rows }, (_, r) => values.subarray(r * cols, (r + 1) * cols));
}

/**
 * @param {Matrix} matrix
 * @param {import('../types.js').Tensor | null} mask
 * @param {{transfer: import('../types.js').Transfer, palette: Palette}} options
 */
function trace(matrix, mask, { transfer, palette }) {
  const gap = matrix.cols <= 64 && matrix.rows <= 64 ? 1 : 0;
  return {
    type: 'heatmap', z: rowsOf(matrix, mask), zmin: 0, zmax: 1, zsmooth: false, hoverongaps: false,
    xgap: gap, ygap: gap, colorscale: stops(palette.panel, palette.deep, transfer), showscale: false, hoverinfo: 'skip',
  };
}

/**
 * The bare matrix; labels, hatching and outlines are laid over it by the page.
 * @param {Matrix} matrix
 * @param {import('../types.js').Tensor | null} mask
 * @param {{transfer: import('../types.js').Transfer, palette: Palette, width: number, height: number}} options
 */
export function matrixFigure(matrix, mask, options) {
  const axis = { visible: false, fixedrange: true };
  return {
    data: [trace(matrix, mask, options)],
    layout: {
      width: options.width, height: options.height, margin: { l: 0, r: 0, t: 0, b: 0, pad: 0 },
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: options.palette.line,
      xaxis: { ...axis, range: [-0.5, matrix.cols - 0.5] },
      yaxis: { ...axis, range: [matrix.rows - 0.5, -0.5] },
    },
    config: { staticPlot: true, displayModeBar: false },
  };
}

/**
 * The matrix as it leaves the page: title, axes, labels and a scale.
 * @param {Matrix} matrix
 * @param {import('../types.js').Tensor | null} mask
 * @param {{transfer: import('../types.js').Transfer, palette: Palette, title: string,
 *   rowTicks: {index: number, text: string}[], colTicks: {index: number, text: string}[]}} options
 */
export function labelledFigure(matrix, mask, options) {
  const { palette } = options;
  const lopsided = Math.max(matrix.rows / matrix.cols, matrix.cols / matrix.rows) > 3;
  const axis = (/** @type {{index: number, text: string}[]} */ ticks) => ({
    tickmode: 'array', tickvals: ticks.map((t) => t.index), ticktext: ticks.map((t) => escaped(t.text)),
    tickfont: { family: 'monospace', size: 12, color: palette.ink }, ticks: '', showgrid: false, zeroline: false,
  });
  return {
    data: [{
      ...trace(matrix, mask, options), showscale: true,
      colorbar: { title: { text: 'weight' }, tickfont: { color: palette.ink }, thickness: 12 },
    }],
    layout: {
      width: 900, height: 900, margin: { l: 130, r: 40, t: 170, b: 30 }, font: { color: palette.ink },
      title: { text: escaped(options.title), x: 0.02, y: 0.985, yanchor: 'top', font: { size: 15 } },
      paper_bgcolor: palette.panel, plot_bgcolor: palette.hatch,
      xaxis: { ...axis(options.colTicks), side: 'top', tickangle: -45, range: [-0.5, matrix.cols - 0.5],
        title: { text: 'keys (looked at)' } },
      yaxis: { ...axis(options.rowTicks), range: [matrix.rows - 0.5, -0.5], title: { text: 'queries (who looks)' },
        ...(lopsided ? {} : { scaleanchor: 'x' }) },
    },
  };
}

/** Plotly reads its texts as a small HTML. @param {string} text */
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
