/** The page's state and its place in the URL's fragment: `#1.` + base64url(deflate(JSON)). */

/** @typedef {import('./types.js').State} State */

const VERSION = '1';

/** Stack and kind of every attention that a model may have, in the order data flows. */
export const GROUPS = ['encoder.self', 'decoder.self', 'decoder.cross'];

/** @type {import('./types.js').Setting} */
const OWN = { mask: { name: 'own' }, scale: 'own' };

/** A fragment that this page cannot read; the message is for the user. */
export class StateError extends Error {}

/**
 * @param {string} model
 * @returns {import('./types.js').Side}
 */
export const side = (model) => ({ model, mask: { name: 'own' }, scale: 'own' });

/**
 * @param {string} model
 * @returns {State}
 */
export const initial = (model) => ({
  text: '', target: '', recording: '', view: 'one', a: side(model), b: side(model), pick: nothing(), pickB: null,
  tab: 'matrix', colour: 'power', zoom: null,
});

/** @param {State} state what the server has to be asked for; the rest is a way to look at it */
export const asked = ({ text, target, recording, view, a, b }) => [text, target, recording, view, a, b];

/** @returns {import('./types.js').Pick} nothing picked yet: the page will choose */
export const nothing = () => ({ stack: null, layer: null, head: null, query: null, key: null, auto: true });

/**
 * @param {Uint8Array<ArrayBuffer>} data
 * @param {CompressionStream | DecompressionStream} stream
 */
async function pump(data, stream) {
  const piped = new Blob([data]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/**
 * @param {State} state
 * @returns {Promise<string>} the fragment without its '#'
 */
export async function encode(state) {
  // JSON.stringify escapes a lone surrogate, so it survives UTF-8
  const packed = await pump(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream('deflate-raw'));
  let binary = '';
  for (const byte of packed) binary += String.fromCharCode(byte);
  return `${VERSION}.${btoa(binary).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')}`;
}

/**
 * @param {string} fragment without '#'
 * @returns {Promise<State>}
 * @throws {StateError} what is wrong with the link, in words
 */
export async function decode(fragment) {
  const [version, body] = fragment.split('.', 2);
  if (version !== VERSION || !body) {
    throw new StateError('This link was made by another version of Attention Atlas and cannot be read; a new view is shown.');
  }
  try {
    const binary = atob(body.replace(/-/g, '+').replace(/_/g, '/'));
    const packed = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    const raw = await pump(packed, new DecompressionStream('deflate-raw'));
    return checked(JSON.parse(new TextDecoder().decode(raw)));
  } catch {
    throw new StateError('This link is damaged, perhaps cut when it was copied; a new view is shown.');
  }
}

/** @param {unknown} value */
const whole = (value) => Number.isInteger(value) && /** @type {number} */ (value) >= 0;
/** @param {unknown} value */
const wholeOrNull = (value) => value === null || whole(value);

/**
 * @param {any} range
 * @returns {boolean}
 */
const isRange = (range) => Array.isArray(range) && range.length === 2 && range.every(whole) && range[0] < range[1];

/** @param {any} mask */
function isMask(mask) {
  if (['own', 'bidirectional', 'causal'].includes(mask?.name)) return true;
  if (mask?.name === 'window') return whole(mask.left) && whole(mask.right);
  return mask?.name === 'prefix' && whole(mask.length);
}

/** @param {any} value */
const isSetting = (value) => isMask(value?.mask) && ['own', 'none'].includes(value.scale);

/** @param {any} value */
const isSide = (value) => typeof value?.model === 'string' && isSetting(value)
  && (value.groups === undefined || (value.groups !== null && typeof value.groups === 'object'
    && Object.entries(value.groups).every(([group, setting]) => GROUPS.includes(group) && isSetting(setting))));

/** @param {any} pick */
const isPick = (pick) => [pick?.layer, pick?.head, pick?.query, pick?.key].every(wholeOrNull)
  && (pick.stack === null || typeof pick.stack === 'string') && typeof pick.auto === 'boolean';

/**
 * @param {any} s parsed JSON
 * @returns {State}
 */
function checked(s) {
  const good = typeof s?.text === 'string' && typeof (s.target ?? '') === 'string' && typeof (s.recording ?? '') === 'string'
    && ['one', 'ab'].includes(s.view) && isSide(s.a) && isSide(s.b)
    && isPick(s.pick) && (s.pickB === null || (whole(s.pickB?.layer) && whole(s.pickB?.head)))
    && ['matrix', 'lines', 'text'].includes(s.tab) && ['power', 'linear', 'log'].includes(s.colour)
    && (s.zoom === null || (isRange(s.zoom?.rows) && isRange(s.zoom?.cols)));
  if (!good) throw new StateError('malformed');
  return { ...s, target: s.target ?? '', recording: s.recording ?? '' };
}

/**
 * @param {import('./types.js').Side} choice
 * @param {string | null} group stack and kind, null for a model of one kind
 * @returns {import('./types.js').Setting}
 */
export function setting(choice, group) {
  return (group === null ? choice : choice.groups?.[group]) ?? OWN;
}

/**
 * @param {import('./types.js').Side} choice
 * @param {string | null} group
 * @param {Partial<import('./types.js').Setting>} change
 * @returns {import('./types.js').Side}
 */
export function changed(choice, group, change) {
  if (group === null) return { ...choice, ...change };
  return { ...choice, groups: { ...choice.groups, [group]: { ...setting(choice, group), ...change } } };
}

/**
 * @param {import('./types.js').Setting} choice
 * @param {{sites?: string}} where
 * @returns {object[]}
 */
function steps({ mask, scale }, where) {
  const values = [];
  if (mask.name !== 'own') values.push({ kind: 'set_mask', rule: mask, ...where });
  if (scale !== 'own') values.push({ kind: 'set_scale', rule: scale, ...where });
  return values;
}

/**
 * @param {import('./types.js').Side} choice
 * @returns {object[]} the plan in the API's words
 */
export function plan(choice) {
  const { groups = {} } = choice;
  return [...steps(choice, {}), ...Object.keys(groups).flatMap((group) => steps(groups[group], { sites: `${group}.*` }))];
}

/**
 * @param {string} text
 * @returns {string} FNV-1a, 32 bits: names a painted state, so that a test can wait for its own
 */
export function digest(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
