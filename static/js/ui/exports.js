/** What the overview and the chosen head can be saved as. */
import { labelled } from '../figures/axis.js';
import { labelledFigure } from '../figures/heatmap.js';
import { shorten } from '../spans.js';
import { csv, save, saveImage, savePng, svgFile } from './download.js';
import { headName } from './format.js';
import { plotly } from './plotly.js';
import { palette } from './theme.js';

/** @typedef {import('./column.js').Column} Column */
/** @typedef {import('./exportmenu.js').Item} Item */

/** @param {Column} column @returns {string} */
const stem = (column) => `${column.data?.answer.model.id.replace(/[^\w.-]+/g, '-')}-${headName(column.ref, column.data?.prefix.replace(' ', '-'))}`;

/** @param {Column} column @returns {Item[]} */
export function overviewExports(column) {
  const { data } = column;
  if (!data) return [];
  return [
    { label: 'Picture as PNG', run: () => savePng(column.map.grid.canvas, `${data.answer.model.id.replace(/[^\w.-]+/g, '-')}-heads.png`) },
    { label: 'Thumbnails as npy', href: data.trace.url(`overview/${data.group}?size=32`) },
    { label: 'Head figures as JSON', href: data.trace.url('heads') },
  ];
}

/** @param {Column} column @returns {Item[]} */
export function headExports(column) {
  const { data, content } = column;
  if (!data || !content) return [];
  const lines = column.tab === 'lines' ? [{ label: 'Lines as SVG', run: () => save(`${stem(column)}-lines.svg`, svgFile(column.lines.svg), 'image/svg+xml') }] : [];
  return [
    ...lines,
    { label: 'Matrix as PNG', run: () => { void saveMatrix(column, 'png'); } },
    { label: 'Matrix as SVG', run: () => { void saveMatrix(column, 'svg'); } },
    { label: 'Weights as CSV', run: () => saveCsv(column) },
    { label: 'Weights as npy, exact', href: data.trace.url(data.path(column.ref, null, Math.max(data.axes.queries.length, data.axes.keys.length))) },
  ];
}

/** @param {Column} column @param {'png' | 'svg'} format */
async function saveMatrix(column, format) {
  const { content, labels, data } = column;
  if (!content || !data) return;
  const { matrix, mask, transfer } = content;
  const ticks = (/** @type {string[]} */ words, /** @type {import('../types.js').Range} */ [start, end], /** @type {number} */ cells) => labelled(end - start, 690, null)
    .map((i) => ({ index: ((i + 0.5) * cells) / (end - start) - 0.5, text: shorten(words[i + start], 16) }));
  const figure = labelledFigure(matrix, mask, {
    transfer, palette: palette(), rowTicks: ticks(labels.queries, matrix.rowRange, matrix.rows), colTicks: ticks(labels.keys, matrix.colRange, matrix.cols),
    title: `${data.title} ${headName(column.ref, data.prefix)}: attention weights, mask: ${data.sites[column.ref.layer].mask}${matrix.exact ? '' : ', max-pooled'}`,
  });
  const library = await plotly();
  const url = await library.toImage(figure, { format, width: 900, height: 900, scale: format === 'png' ? 2 : 1 });
  saveImage(url, stem(column), format);
}

/** @param {Column} column */
function saveCsv(column) {
  const { content, labels } = column;
  if (!content) return;
  const { matrix } = content;
  const name = (/** @type {string[]} */ words, /** @type {import('../types.js').Range} */ [start, end], /** @type {number} */ cells, /** @type {number} */ i) => words[start + Math.floor((i * (end - start)) / cells)];
  const head = ['query \\ key', ...Array.from({ length: matrix.cols }, (_, c) => name(labels.keys, matrix.colRange, matrix.cols, c))];
  const rows = Array.from({ length: matrix.rows }, (_, r) => [
    name(labels.queries, matrix.rowRange, matrix.rows, r), ...Array.from(matrix.data.slice(r * matrix.cols, (r + 1) * matrix.cols)),
  ]);
  save(`${stem(column)}${matrix.exact ? '' : '-pooled'}.csv`, csv([head, ...rows]), 'text/csv');
}
