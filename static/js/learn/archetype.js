/** The three kinds of Transformer as stacks of blocks, drawn from the configurations that a lab read. */
import { shape } from '../figures/svg.js';
import { el } from '../ui/dom.js';

/** @typedef {{stack: string, layers: number, width: number, heads: number, 'key heads': number, 'head width': number, 'FFN width': number,
 *   activation: string, norm: string, position: string, mask: string, sees_ahead: boolean, cross: boolean}} Column */
/** @typedef {{title: string, stacks: Column[], reads: 'text' | 'sound', vocabulary: number, readout: string, beside: boolean}} Archetype */

/** Sizes in units of the drawing, which are CSS pixels where there is room. */
const WIDE = 172;
const GAP = 28;
const PART = 42;
const SPACE = 10;
const HEAD = 26;
const TOP = 40;
const FOOT = 88;
const CELLS = 5;
const CELL = 5;

const count = (/** @type {number} */ value) => value.toLocaleString('en');

/** @param {HTMLElement} root @param {import('./lab.js').Lab} lab */
export default function archetype(root, lab) {
  root.classList.add('archetypes');
  lab.onResult(({ facts }) => {
    root.replaceChildren(.../** @type {Archetype[]} */ (facts.archetypes).map(figure));
  });
}

/** @param {Archetype} one */
function figure(one) {
  const width = one.stacks.length * WIDE + (one.stacks.length - 1) * GAP;
  const most = Math.max(...one.stacks.map(parts).map(({ length }) => length));
  const height = TOP + tall(most) + FOOT;
  const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': words(one) });
  const columns = one.stacks.map((stack, i) => column(one, stack, i * (WIDE + GAP), height - FOOT));
  svg.append(...columns.flatMap(({ shapes }) => shapes));
  if (columns.length === 2) svg.append(...bridge(columns[0].top, columns[1].cross));
  return el('figure', {}, el('figcaption', {}, one.title), svg);
}

/** @param {number} many parts of a block @returns {number} its height */
const tall = (many) => HEAD + many * (PART + SPACE);

/** @param {Column} stack @returns {{name: string, more: string, mask?: boolean[][], kind: string}[]} the parts of its block, first one first */
function parts(stack) {
  const groups = stack['key heads'] < stack.heads ? `, ${stack['key heads']} for keys` : '';
  const cells = Array.from({ length: CELLS }, (_, row) => Array.from({ length: CELLS }, (__, key) => stack.sees_ahead || key <= row));
  const cross = { name: 'cross-attention', more: 'reads the encoder', kind: 'cross' };
  return [
    { name: 'self-attention', more: `${stack.heads} heads${groups}`, mask: cells, kind: 'self' },
    ...(stack.cross ? [cross] : []),
    { name: 'feed-forward', more: `${count(stack['FFN width'])}, ${stack.activation}`, kind: 'ffn' },
  ];
}

/**
 * One stack: what it reads, its block, what it gives.
 * @param {Archetype} one @param {Column} stack @param {number} x @param {number} bottom of the block
 * @returns {{shapes: SVGElement[], top: [number, number], cross: [number, number]}}
 */
function column(one, stack, x, bottom) {
  const inside = parts(stack);
  const top = bottom - tall(inside.length);
  const middle = x + WIDE / 2;
  const sound = one.reads === 'sound' && stack.stack === 'encoder';
  const memory = one.beside && stack.stack === 'encoder';
  const place = (/** @type {number} */ i) => bottom - (i + 1) * (PART + SPACE);
  const shapes = [
    shape('rect', { class: 'block', x: x + 0.5, y: top, width: WIDE - 1, height: bottom - top, rx: 6 }),
    label(x + 10, top + 17, `${stack.stack} × ${stack.layers}`, 'strong'),
    label(x + WIDE - 10, top + 17, `width ${count(stack.width)}`, 'soft', 'end'),
    ...inside.flatMap((part, i) => box(part, x + 8, place(i))),
    ...arrow(middle, bottom + 14, bottom),
    shape('rect', { class: 'embed', x: x + 8, y: bottom + 14, width: WIDE - 16, height: 38, rx: 4 }),
    label(middle, bottom + 30, sound ? 'two convolutions' : `${count(one.vocabulary)} tokens`, '', 'middle'),
    label(middle, bottom + 45, `positions: ${stack.position}`, 'soft', 'middle'),
    label(middle, bottom + 74, sound ? 'sound' : stack.cross ? 'text so far' : 'text', 'soft', 'middle'),
    ...(memory ? [] : [...arrow(middle, top, top - 14), label(middle, top - 20, given(one), '', 'middle')]),
  ];
  return { shapes, top: [middle, top], cross: [x + 8, place(1) + PART / 2] };
}

/** @param {Archetype} one @returns {string} what the last stack gives */
const given = (one) => ({ logits: 'the next token', masked: 'the masked tokens' }[one.readout] ?? 'a vector a token');

/** @param {{name: string, more: string, mask?: boolean[][], kind: string}} part @param {number} x @param {number} y */
function box({ name, more, mask, kind }, x, y) {
  const left = x + WIDE - 16 - CELLS * CELL - 6;
  const cells = (mask ?? []).flatMap((row, i) => row.map((open, j) => shape('rect', {
    class: open ? 'open' : 'closed', x: left + j * CELL, y: y + (PART - CELLS * CELL) / 2 + i * CELL, width: CELL - 1, height: CELL - 1,
  })));
  return [
    shape('rect', { class: `part ${kind}`, x, y, width: WIDE - 16, height: PART, rx: 4 }),
    label(x + 8, y + 17, name), label(x + 8, y + 33, more, 'soft'), ...cells,
  ];
}

/**
 * From the encoder's last state to the decoder's cross-attention.
 * @param {[number, number]} from @param {[number, number]} to
 */
function bridge([x, y], [right, level]) {
  const between = right - 8 - GAP / 2;
  return [
    shape('path', { class: 'wire', d: `M ${x} ${y} V ${y - 14} H ${between} V ${level} H ${right - 5}` }),
    shape('path', { class: 'tip', d: `M ${right} ${level} l -7 -4 v 8 z` }),
  ];
}

/** An arrow upwards. @param {number} x @param {number} from @param {number} to */
const arrow = (x, from, to) => [
  shape('path', { class: 'wire', d: `M ${x} ${from} V ${to + 5}` }), shape('path', { class: 'tip', d: `M ${x} ${to} l -4 7 h 8 z` }),
];

/** @param {number} x @param {number} y @param {string} text @param {string} [kind] @param {string} [anchor] */
const label = (x, y, text, kind = '', anchor = 'start') => shape('text', { x, y, class: kind, 'text-anchor': anchor }, text);

/** @param {Archetype} one @returns {string} the drawing for who does not see it */
function words(one) {
  const of = (/** @type {Column} */ stack) => `${stack.stack} of ${stack.layers} layers, ${stack.mask}${stack.cross ? ', with cross-attention to the encoder' : ''}`;
  return `${one.title}: ${one.stacks.map(of).join('; ')}`;
}
