/** One head's matrix: Plotly draws the cells, the page lays hatching, labels and outlines over them. */
import { frame } from '../figures/axis.js';
import { drawCells, drawHatch } from '../figures/cells.js';
import { matrixFigure } from '../figures/heatmap.js';
import { el, sharp } from './dom.js';
import { MatrixOverlay } from './matrixoverlay.js';
import { plotlyNow } from './plotly.js';
import { palette } from './theme.js';

/** @typedef {import('../types.js').Matrix} Matrix */
/** @typedef {import('../types.js').Range} Range */
/**
 * @typedef {{matrix: Matrix, mask: import('../types.js').Tensor | null, labels: {queries: string[], keys: string[]},
 *   axes: import('../types.js').Axes, transfer: import('../types.js').Transfer}} Content
 */

export class MatrixView {
  /**
   * @param {HTMLElement} root
   * @param {{onPick: (rows: Range, cols: Range) => void, onPoint: (query: number | null) => void,
   *   onMove: (query: number, key: number) => void, onZoom: (rows: Range, cols: Range) => void}} on
   */
  constructor(root, on) {
    this.root = root;
    this.standIn = el('canvas', { class: 'stand-in', 'aria-hidden': 'true' });
    this.plot = el('div', { class: 'plot', 'aria-hidden': 'true' });
    this.hatch = el('canvas', { class: 'hatch', 'aria-hidden': 'true' });
    this.cells = el('div', { class: 'cells' }, this.standIn, this.plot, this.hatch);
    this.overlay = new MatrixOverlay(on);
    root.append(this.cells, ...this.overlay.elements);
    /** @type {Content | null} */
    this.content = null;
    this.pick = { query: 0, key: 0 };
  }

  /**
   * @param {Content} content
   * @param {{query: number, key: number}} pick
   */
  show(content, pick) {
    this.content = content;
    this.pick = pick;
    this.draw();
  }

  /** Draws again: the size, the theme or the content has changed. */
  draw() {
    const { content, root } = this;
    if (!content || !root.clientWidth) return;
    const { matrix, labels } = content;
    const place = frame(
      labels.queries.slice(...matrix.rowRange), labels.keys.slice(...matrix.colRange), matrix.rows, matrix.cols, root.clientWidth,
    );
    root.style.height = `${place.fullHeight}px`;
    Object.assign(this.cells.style, {
      left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px`,
    });
    this.#cells(content, place.width, place.height);
    this.overlay.lay(content, place);
    this.mark(this.pick);
  }

  /**
   * @param {Content} content
   * @param {number} width
   * @param {number} height
   */
  #cells({ matrix, mask, transfer }, width, height) {
    const options = { width, height, transfer, palette: palette() };
    const library = plotlyNow();
    this.standIn.hidden = Boolean(library);
    if (library) {
      const figure = matrixFigure(matrix, mask, options);
      library.react(this.plot, figure.data, figure.layout, figure.config);
    } else {
      drawCells(sharp(this.standIn, width, height), matrix, options);
    }
    this.root.dataset.drawn = library ? 'plotly' : 'canvas';
    const context = sharp(this.hatch, width, height);
    if (mask) drawHatch(context, mask, options);
  }

  /** @param {{query: number, key: number}} pick */
  mark(pick) {
    this.pick = pick;
    this.overlay.mark(pick);
  }
}
