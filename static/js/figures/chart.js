/** A lab's series as a Plotly figure. */
import { css, ramp } from '../colour.js';
import { DASH, coinciding, coloursOf, drawable, extent } from './series.js';
import { logTicks, plainTicks, wholeTicks } from './ticks.js';

/** @typedef {import('../learn/types.js').Chart} Chart */
/** @typedef {import('../learn/types.js').Matrix} Matrix */
/** @typedef {import('../types.js').Palette} Palette */
/** @typedef {{palette: Palette, width: number, height: number, titled?: boolean}} Options */

/** Plotly reads its texts as a small HTML. @param {string} text */
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

/**
 * Plotly takes words for names of places, and puts equal ones in one place: the second “the” gets a mark that is not seen.
 * @template {(number | string | null)[]} V
 * @param {V} values
 * @returns {V}
 */
export function apart(values) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  return /** @type {V} */ (values.map((value) => {
    if (typeof value !== 'string') return value;
    const before = seen.get(value) ?? 0;
    seen.set(value, before + 1);
    return value + '\u200b'.repeat(before);
  }));
}

/** Labels on an axis of words before they are thinned, pixels of a letter, and of a line of turned words. */
const [WORDS, LETTER, LINE] = [40, 6.5, 13];
/** Pixels beside a picture: its margins, and a matrix's scale of colours. */
const [MARGINS, SCALE] = [80, 70];

/** Pixels of a tick's label along an axis, across and up; of a letter of a title; of a line of the legend in a saved picture. */
const [ACROSS, UP, TITLE, ROW] = [52, 26, 6.6, 20];
/** Pixels that a saved picture's title takes, and an entry of its legend beside its words. */
const [HEADING, ENTRY] = [44, 46];

/** @param {import('../learn/types.js').Series} series @param {Options} options */
export function chartFigure(series, options) {
  const { palette, width, height, titled } = options;
  const matrix = series.kind === 'matrix';
  const legend = !matrix && series.lines.length > 1;
  const above = titled ? HEADING + (legend ? ROW * rowsOf(series, width - MARGINS) : 0) : 8;
  const across = width - MARGINS - (matrix ? SCALE + longest(series.rows) : 0);
  const up = height - 60 - (titled ? above : legend ? 22 : 0);
  return {
    data: matrix ? [cells(series, palette)] : drawn(series, palette),
    layout: {
      width, height, margin: { l: 60, r: 16, t: above, b: 44 }, font: { color: palette.ink, size: 12 },
      title: titled ? { text: escaped(series.title), x: 0.02, font: { size: 15 }, yref: 'container', y: 1 - 12 / height, yanchor: 'top' } : undefined,
      paper_bgcolor: titled ? palette.panel : 'rgba(0,0,0,0)', plot_bgcolor: matrix ? palette.hatchLine : 'rgba(0,0,0,0)',
      showlegend: legend,
      // A band fills to the line before it, and Plotly turns the legend round for that.
      legend: { orientation: 'h', traceorder: 'normal', y: 1.02, yanchor: 'bottom', x: 0, font: { size: 11 } },
      hovermode: matrix ? 'closest' : 'x unified', hoverlabel: { bgcolor: palette.panel, font: { color: palette.ink } },
      barmode: 'group', dragmode: false,
      xaxis: axis(series.x, matrix ? apart(series.columns) : series.lines.flatMap(({ x }) => apart(x)), palette, across, ACROSS),
      yaxis: { ...axis(series.y, matrix ? apart(series.rows) : series.lines.flatMap(({ y }) => y), palette, up, UP, !matrix), ...(matrix ? { autorange: 'reversed', automargin: true } : {}) },
    },
    config: { displayModeBar: false, responsive: false },
  };
}

/** @param {Chart} series @param {number} width @returns {number} lines that the legend may take */
function rowsOf({ lines }, width) {
  const entry = ENTRY + longest(lines.map((line) => named(line)));
  return Math.ceil(lines.length / Math.max(1, Math.floor(width / entry)));
}

/** @param {string} label @param {number} room pixels @returns {string} in lines that stay within it */
function wrapped(label, room) {
  const most = Math.max(12, Math.floor(room / TITLE));
  /** @type {string[]} */
  const lines = [];
  for (const word of label.split(' ')) {
    const last = lines[lines.length - 1];
    if (last !== undefined && last.length + 1 + word.length <= most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.map(escaped).join('<br>');
}

/** @param {(number | string | null)[]} words @returns {number} pixels of the longest */
const longest = (words) => LETTER * Math.max(0, ...words.map((word) => String(word).length));

/**
 * @param {import('../learn/types.js').Axis} spec
 * @param {(number | string | null)[]} values
 * @param {Palette} palette
 * @param {number} room pixels along it; words are turned where they need more
 * @param {number} each pixels that a label of a number needs along it
 * @param {boolean} [vertical] words on it lie beside it and are never turned
 */
function axis({ label, log, zero }, values, palette, room, each, vertical = false) {
  const words = values.length > 0 && typeof values[0] === 'string';
  const base = {
    title: { text: wrapped(label, room), font: { size: 12 }, standoff: 8 }, gridcolor: palette.line, zerolinecolor: palette.line, linecolor: palette.line,
    tickfont: { size: 11, color: palette.soft }, automargin: true,
  };
  if (words) {
    const distinct = [...new Set(/** @type {string[]} */ (values))];
    const most = Math.min(WORDS, Math.max(1, Math.floor(room / LINE)));
    const step = Math.ceil(distinct.length / most);
    // Left to itself Plotly may turn them to and fro for ever, as each turn changes the margins.
    const one = each === UP ? Infinity : room / Math.ceil(distinct.length / step);
    const fits = longest(distinct) <= one;
    return { ...base, tickangle: fits ? 0 : one < 18 ? -90 : -45, type: 'category', tickmode: 'array', tickvals: distinct.filter((_, i) => i % step === 0), ticktext: distinct.filter((_, i) => i % step === 0).map(escaped) };
  }
  const most = Math.max(2, Math.floor(room / each));
  if (log) return { ...base, type: 'log', ...(logTicks(values, most) ?? plainTicks(values, most)) };
  // Bars stand on nothing, which is then on the axis too.
  return { ...base, type: 'linear', ...(zero ? { rangemode: 'tozero' } : {}), ...wholeTicks(vertical ? [0, ...values] : values, most) };
}

/** @param {Chart} series @param {Palette} palette @returns {object[]} */
function drawn(series, palette) {
  const colours = coloursOf(series.lines.map(({ name }) => name), palette);
  const under = coinciding(series.lines);
  return series.lines.flatMap((line, i) => traces(series, line, colours[i], under[i] >= 0 ? 'over' : under.includes(i) ? 'under' : 'apart'));
}

/** @param {import('../learn/types.js').Line} line @returns {string} with where its numbers come from */
const named = (line) => (line.origin === 'measured' ? line.name : `${line.name} (${line.origin})`);

/** Marks of measured points, so that lines differ without their colours too. */
const MARKS = ['circle', 'square', 'triangle-up', 'cross', 'triangle-down', 'star', 'hexagon'];
/** Of lines that coincide, the one below is drawn wide and the one above thin and dashed: both are seen. @type {Record<string, {width: number, size: number}>} */
const STROKE = { apart: { width: 2, size: 6 }, under: { width: 5, size: 9 }, over: { width: 2, size: 4 } };

/** @param {Chart} series @param {import('../learn/types.js').Line} line @param {{colour: string, place: number}} hue @param {string} lies @returns {object[]} */
function traces(series, line, { colour, place }, lies) {
  const y = line.y.map((value) => (drawable(value, series.y.log) ? value : null));
  const { width, size } = STROKE[lies];
  const dash = lies === 'over' && DASH[line.origin] === 'solid' ? 'dash' : DASH[line.origin];
  const shared = { x: apart(line.x), name: escaped(named(line)), hovertemplate: '%{y:.4~g}' };
  if (series.kind === 'bars') return [{ ...shared, y, type: 'bar', marker: { color: colour, opacity: line.origin === 'measured' ? 1 : 0.5 } }];
  const many = line.x.length > 32;
  const mode = (series.kind === 'points' && line.origin !== 'theory') || line.origin === 'published' ? 'markers' : many ? 'lines' : 'lines+markers';
  const main = { ...shared, y, type: 'scatter', mode, line: { color: colour, width, dash }, marker: { color: colour, size, symbol: line.origin === 'measured' ? MARKS[place] : 'diamond' } };
  return line.band ? [...band(line, colour), main] : [main];
}

/** @param {import('../learn/types.js').Line} line @param {string} colour */
function band(line, colour) {
  const [low, high] = /** @type {(number | null)[][]} */ (line.band);
  const edge = { x: line.x, type: 'scatter', mode: 'lines', line: { width: 0 }, showlegend: false, hoverinfo: 'skip' };
  return [{ ...edge, y: low }, { ...edge, y: high, fill: 'tonexty', fillcolor: `${colour}33` }];
}

/** @param {Matrix} series @param {Palette} palette */
function cells(series, palette) {
  const values = series.values.flat();
  const [low, high] = extent(values, false) ?? [0, 1];
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return {
    type: 'heatmap', x: apart(series.columns), y: apart(series.rows), z: series.values, zsmooth: false,
    ...(series.diverging ? { zmin: -most, zmax: most } : { zmin: Math.min(low, 0), zmax: high > 0 || low === high ? high || 1 : 0 }),
    // A matrix without a unit holds one thing or none: its scale would say nothing.
    showscale: series.unit !== '', colorscale: scale(series.diverging, palette), colorbar: { title: { text: escaped(series.unit), side: 'right' }, thickness: 10, tickfont: { color: palette.soft, size: 11 }, outlinewidth: 0 },
    hovertemplate: `${escaped(series.y.label)} %{y}, ${escaped(series.x.label)} %{x}: %{z:.4~g}<extra></extra>`,
  };
}

/** @param {boolean} diverging @param {Palette} palette @returns {[number, string][]} */
export function scale(diverging, palette) {
  const steps = Array.from({ length: 17 }, (_, i) => i / 16);
  const up = ramp(palette.panel, palette.deep);
  if (!diverging) return steps.map((t) => [t, css(up(t))]);
  const [cool, warm] = [ramp(palette.panel, palette.query), ramp(palette.panel, palette.key)];
  return [...steps.map((t) => /** @type {[number, string]} */ ([t / 2, css(warm(1 - t))])), ...steps.slice(1).map((t) => /** @type {[number, string]} */ ([0.5 + t / 2, css(cool(t))]))];
}
