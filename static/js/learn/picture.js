/** One series in the page: its title, its drawing, and what it can be saved as. */
import { chartFigure } from '../figures/chart.js';
import { tableOf } from '../figures/series.js';
import { drawSketch } from '../figures/sketch.js';
import { el, sharp } from '../ui/dom.js';
import { csv, save, saveImage } from '../ui/download.js';
import { exportMenu } from '../ui/exportmenu.js';
import { plotly, plotlyNow } from '../ui/plotly.js';
import { palette } from '../ui/theme.js';

/** @typedef {import('./types.js').Series} Series */

const WIDEST = 860;
const HEIGHT = 300;
/** Pixels of a line of the legend, of an entry's mark and of a letter; lines that the picture has room for. */
const LEGEND = { line: 19, mark: 50, letter: 6, free: 2 };
const SAVED = { width: 1000, height: 600 };

/** @param {import('./types.js').Line[]} lines @param {number} width @returns {number} lines that a legend of them takes */
function legendLines(lines, width) {
  if (lines.length < 2) return 0;
  const entry = Math.max(...lines.map(({ name }) => LEGEND.mark + LEGEND.letter * name.length));
  return Math.ceil(lines.length / Math.max(1, Math.floor(width / entry)));
}

export class Picture {
  /**
   * @param {string} id
   * @param {string | undefined} shape square: as high as wide
   * @param {() => {stem: string, about: {lab: string, parameters: Record<string, any>}}} file what its files are called, and of what they are
   */
  constructor(id, shape, file) {
    this.id = id;
    this.shape = shape;
    this.file = file;
    this.title = el('figcaption', {});
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.plot = el('div', { class: 'plot' });
    this.box = el('div', { class: 'drawing', role: 'img', 'aria-label': 'not drawn yet' }, this.canvas, this.plot);
    this.element = el('figure', { class: 'chart', 'data-chart': id }, el('div', { class: 'chart-head' }, this.title, exportMenu(id, () => this.#exports())), this.box);
    /** @type {Series | null} */
    this.series = null;
  }

  /** @param {Series} series */
  show(series) {
    this.series = series;
    this.title.textContent = series.title;
    this.box.setAttribute('aria-label', summary(series));
    this.draw();
  }

  /** Keeps the room that the drawing will most likely take. */
  reserve() {
    const width = Math.min(WIDEST, this.element.clientWidth);
    this.box.style.height = `${this.shape === 'square' && width ? squared(width, 1) : HEIGHT}px`;
  }

  /** Draws again: the size, the theme or the library has changed. */
  draw() {
    const width = Math.min(WIDEST, this.element.clientWidth);
    if (!this.series || !width) return;
    const size = { width, height: this.#height(this.series, width) };
    this.box.style.height = `${size.height}px`;
    const library = plotlyNow();
    this.canvas.hidden = Boolean(library);
    this.element.dataset.drawn = library ? 'plotly' : 'canvas';
    if (!library) return drawSketch(sharp(this.canvas, size.width, size.height), this.series, { palette: palette(), ...size });
    const figure = chartFigure(this.series, { palette: palette(), ...size });
    library.react(this.plot, figure.data, figure.layout, figure.config);
  }

  /** @param {Series} series @param {number} width */
  #height(series, width) {
    if (series.kind !== 'matrix') return HEIGHT + LEGEND.line * Math.max(0, legendLines(series.lines, width) - LEGEND.free);
    if (this.shape !== 'square') return HEIGHT;
    return squared(width, series.rows.length / Math.max(1, series.columns.length));
  }

  /** @returns {import('../ui/exportmenu.js').Item[]} */
  #exports() {
    const { series } = this;
    if (!series) return [];
    const { stem, about } = this.file();
    return [
      { label: 'Picture as PNG', run: () => { void this.#save('png'); } },
      { label: 'Picture as SVG', run: () => { void this.#save('svg'); } },
      { label: 'Numbers as CSV', run: () => save(`${stem}.csv`, csv(tableOf(series)), 'text/csv') },
      { label: 'Numbers as JSON', run: () => save(`${stem}.json`, JSON.stringify({ ...about, ...series }, null, 1), 'application/json') },
    ];
  }

  /** @param {'png' | 'svg'} format */
  async #save(format) {
    if (!this.series) return;
    const library = await plotly();
    const figure = chartFigure(this.series, { palette: palette(), ...SAVED, titled: true });
    const url = await library.toImage(figure, { format, ...SAVED, scale: format === 'png' ? 2 : 1 });
    saveImage(url, this.file().stem, format);
  }
}

/** @param {number} width @param {number} ratio of rows to columns @returns {number} pixels of a drawing with square cells */
const squared = (width, ratio) => Math.min(640, Math.max(HEIGHT, Math.round((width - 140) * Math.min(1, ratio)) + 60));

/** @param {Series} series @returns {string} what there is to see, for who does not see it */
function summary(series) {
  const axes = `${series.x.label} across, ${series.y.label} up`;
  if (series.kind === 'matrix') return `${series.title}: a heat map of ${series.rows.length} by ${series.columns.length}, ${axes}`;
  return `${series.title}: ${series.lines.map(({ name, origin }) => `${name} (${origin})`).join(', ')}; ${axes}`;
}
