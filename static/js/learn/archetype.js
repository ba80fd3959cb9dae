/** The three kinds of Transformer as stacks of blocks, drawn from the configurations that a lab read. */
import { shape } from '../figures/svg.js';
import { el } from '../ui/dom.js';

/** @typedef {{stack: string, layers: number, width: number, heads: number, 'key heads': number, 'head width': number, 'FFN width': number,
 *   activation: string, norm: string, position: string, mask: string, sees_ahead: boolean, cross: boolean, final_norm: boolean}} Column */
/** @typedef {{name: string, more: string[], mask?: boolean[][], kind: string}} Part */
/** @typedef {{title: string, stacks: Column[], reads: 'text' | 'sound', vocabulary: number, readout: string, beside: boolean}} Archetype */

/** Sizes in units of the drawing, which are CSS pixels where there is room. */
const WIDE = 172;
const GAP = 28;
const LINE = 16;
const NORM = 15;
const NEAR = 3;
const SPACE = 10;
const HEAD = 42;
const TOP = 56;
const FOOT = 88;
const CELLS = 5;
const CELL = 5;
/** Where a block's parts end and its residual stream runs, from its right edge. */
const [INSET, STREAM] = [30, 15];

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
  const height = TOP + Math.max(...one.stacks.map(tall)) + FOOT;
  const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': words(one) });
  const columns = one.stacks.map((stack, i) => column(one, stack, i * (WIDE + GAP), height - FOOT));
  svg.append(...columns.flatMap(({ shapes }) => shapes));
  if (columns.length === 2) svg.append(...bridge(columns[0].top, columns[1].cross));
  return el('figure', {}, el('figcaption', {}, one.title), svg);
}

/** @param {Part} part @returns {number} its height */
const high = ({ more }) => 10 + LINE * (1 + more.length);

/** @param {Part} part @returns {number} its height with its norms */
const whole = (part, /** @type {string} */ placement) => high(part) + (NORM + NEAR) * (placement === 'both' ? 2 : 1) + SPACE;

/** @param {Column} stack @returns {string[]} the norm, and where it stands */
const norms = ({ norm }) => norm.split(', ');

/** @param {Column} stack @returns {number} height of its block */
const tall = (stack) => HEAD + SPACE + parts(stack).reduce((sum, part) => sum + whole(part, norms(stack)[1]), 0);

/** @param {Column} stack @returns {Part[]} the parts of its block, first one first */
function parts(stack) {
  const groups = stack['key heads'] < stack.heads ? [`${stack['key heads']} for keys and values`] : [];
  const cells = Array.from({ length: CELLS }, (_, row) => Array.from({ length: CELLS }, (__, key) => stack.sees_ahead || key <= row));
  const cross = { name: 'cross-attention', more: ['reads the encoder'], kind: 'cross' };
  return [
    { name: 'self-attention', more: [`${stack.heads} heads`, ...groups], mask: cells, kind: 'self' },
    ...(stack.cross ? [cross] : []),
    { name: 'feed-forward', more: [`${count(stack['FFN width'])}, ${stack.activation}`], kind: 'ffn' },
  ];
}

/**
 * One stack: what it reads, its block, what it gives.
 * @param {Archetype} one @param {Column} stack @param {number} x @param {number} bottom of the block
 * @returns {{shapes: SVGElement[], top: [number, number], cross: [number, number]}}
 */
function column(one, stack, x, bottom) {
  const top = bottom - tall(stack);
  const [middle, stream] = [x + WIDE / 2, x + WIDE - STREAM];
  const sound = one.reads === 'sound' && stack.stack === 'encoder';
  const memory = one.beside && stack.stack === 'encoder';
  const end = stack.final_norm ? top - NORM - 8 : top;
  const { shapes: inside, cross } = block(stack, x, bottom);
  const shapes = [
    shape('rect', { class: 'block', x: x + 0.5, y: top, width: WIDE - 1, height: bottom - top, rx: 6 }),
    label(x + 10, top + 18, `${stack.stack} × ${stack.layers}`, 'strong'),
    label(x + 10, top + 34, `width ${count(stack.width)}`, 'soft'),
    shape('path', { class: 'wire', d: `M ${stream} ${bottom + 14} V ${end}` }),
    ...inside,
    ...(stack.final_norm ? norm(stack, x + 0.5, end, WIDE - 1) : []),
    shape('rect', { class: 'embed', x: x + 8, y: bottom + 14, width: WIDE - 16, height: 38, rx: 4 }),
    label(middle, bottom + 30, sound ? 'two convolutions' : `${count(one.vocabulary)} tokens`, '', 'middle'),
    label(middle, bottom + 45, `positions: ${stack.position}`, 'soft', 'middle'),
    label(middle, bottom + 74, sound ? 'sound' : stack.cross ? 'text so far' : 'text', 'soft', 'middle'),
    ...(memory ? [] : [...arrow(stream, end, end - 14), label(x + WIDE - 2, end - 19, given(one), '', 'end')]),
  ];
  return { shapes, top: [stream, end], cross };
}

/**
 * The parts of a block from below: each reads the stream, and ⊕ adds what it gives. A norm stands before the part, on the stream after the sum, or both.
 * @param {Column} stack @param {number} x @param {number} bottom
 * @returns {{shapes: SVGElement[], cross: [number, number]}}
 */
function block(stack, x, bottom) {
  const placement = norms(stack)[1];
  const [left, width, stream] = [x + 8, WIDE - 8 - INSET, x + WIDE - STREAM];
  /** @type {SVGElement[]} */
  const shapes = [];
  /** @type {[number, number]} */
  let cross = [left, bottom];
  let floor = bottom - SPACE;
  for (const part of parts(stack)) {
    const before = placement !== 'post';
    const y = floor - high(part) - (before ? NORM + NEAR : 0);
    const enters = before ? floor - NORM / 2 : floor - 9;
    const sum = y + 12;
    shapes.push(
      ...(before ? norm(stack, left, floor - NORM, width) : []), ...box(part, left, y, width),
      ...tip(left + width, enters, stream), shape('path', { class: 'wire', d: `M ${left + width} ${sum} H ${stream - 6}` }),
      shape('circle', { class: 'sum', cx: stream, cy: sum, r: 6 }), shape('path', { class: 'wire', d: `M ${stream - 4} ${sum} h 8 M ${stream} ${sum - 4} v 8` }),
    );
    if (part.kind === 'cross') cross = [left, y + high(part) / 2];
    if (placement === 'post') shapes.push(...norm(stack, left, y - NEAR - NORM, WIDE - 14));
    if (placement === 'both') shapes.push(...norm(stack, left, y - NEAR - NORM, width));
    floor -= whole(part, placement);
  }
  return { shapes, cross };
}

/** From the stream into a part. @param {number} to @param {number} y @param {number} stream */
const tip = (to, y, stream) => [
  shape('path', { class: 'wire', d: `M ${stream} ${y} H ${to + 5}` }), shape('path', { class: 'tip', d: `M ${to} ${y} l 7 -4 v 8 z` }),
];

/** @param {Column} stack @param {number} x @param {number} y @param {number} width */
const norm = (stack, x, y, width) => [
  shape('rect', { class: 'norm', x, y, width, height: NORM, rx: 3 }), label(x + 8, y + 11, norms(stack)[0], 'small'),
];

/** @param {Archetype} one @returns {string} what the last stack gives */
const given = (one) => ({ logits: 'the next token', masked: 'the masked tokens' }[one.readout] ?? 'a vector a token');

/** @param {Part} part @param {number} x @param {number} y @param {number} width */
function box({ name, more, mask, kind }, x, y, width) {
  const left = x + width - CELLS * CELL - 6;
  const cells = (mask ?? []).flatMap((row, i) => row.map((open, j) => shape('rect', {
    class: open ? 'open' : 'closed', x: left + j * CELL, y: y + 6 + i * CELL, width: CELL - 1, height: CELL - 1,
  })));
  return [
    shape('rect', { class: `part ${kind}`, x, y, width, height: high({ name, more, kind }), rx: 4 }),
    label(x + 8, y + 17, name), ...more.map((line, i) => label(x + 8, y + 17 + LINE * (i + 1), line, 'soft')), ...cells,
  ];
}

/**
 * From the encoder's last state to the decoder's cross-attention.
 * @param {[number, number]} from @param {[number, number]} to
 */
function bridge([x, y], [right, level]) {
  const between = right - 8 - GAP / 2;
  return [
    shape('path', { class: 'wire', d: `M ${x} ${y} V ${y - 10} H ${between} V ${level} H ${right - 5}` }),
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
