/** The API counts Unicode code points; JavaScript strings count UTF-16 units. */

/**
 * @param {string} text
 * @returns {Uint32Array} for each code point, and one past the last, its index in UTF-16 units
 */
export function unitOffsets(text) {
  const offsets = new Uint32Array([...text].length + 1);
  let unit = 0;
  let point = 0;
  for (const character of text) {
    offsets[point] = unit;
    unit += character.length;
    point += 1;
  }
  offsets[point] = unit;
  return offsets;
}

/**
 * @param {string} text
 * @param {number} points
 * @returns {string} the first so many code points
 */
export function firstPoints(text, points) {
  const offsets = unitOffsets(text);
  return text.slice(0, offsets[Math.min(points, offsets.length - 1)]);
}

/**
 * How each token joins the one before it, so that a strip of tokens reads as the text does.
 *
 * @param {string} text
 * @param {import('./types.js').Token[]} tokens
 * @returns {('start' | 'joined' | 'space' | 'break')[]}
 */
export function joints(text, tokens) {
  const offsets = unitOffsets(text);
  let end = 0;
  return tokens.map((token, index) => {
    if (!token.span) {
      if (index === 0) return 'start';
      return token.special || tokens[index - 1].special || /^\s/.test(token.text) ? 'space' : 'joined';
    }
    const begin = Math.min(token.span[0], offsets.length - 1);
    const gap = begin > end ? text.slice(offsets[end], offsets[begin]) : '';
    const lead = /^\s*/.exec(token.text)?.[0] ?? '';
    end = Math.max(end, Math.min(token.span[1], offsets.length - 1));
    if (index === 0) return 'start';
    if (/\n/.test(gap + lead)) return 'break';
    return /\s/.test(gap + lead) || tokens[index - 1].special ? 'space' : 'joined';
  });
}

const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * @param {string} text
 * @returns {'ltr' | 'rtl'} by the first letter, as Unicode's bidirectional rule P2 does
 */
export function direction(text) {
  const letter = /\p{L}/u.exec(text)?.[0];
  return letter && RTL.test(letter) ? 'rtl' : 'ltr';
}

/**
 * @param {string} text a token's text
 * @returns {string} what can be seen of it: white space and control characters get a visible sign
 */
export function visible(text) {
  const body = text.replace(/^ (?=\S)/, '');
  if (body === '') return text === '' ? '∅' : '␣';
  return body
    .replace(/\n/g, '⏎').replace(/\t/g, '⇥').replace(/ /g, '␣').replace(/\u00a0/g, '⍽')
    .replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200b\u2060\ufeff\ud800-\udfff](?![\udc00-\udfff])/gu,
      (c) => `U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`);
}

/**
 * @param {string} text
 * @param {number} most
 * @returns {string} cut in the middle of a picture's label, with a sign that it was cut
 */
export function shorten(text, most) {
  const points = [...text];
  return points.length <= most ? text : `${points.slice(0, most - 1).join('')}…`;
}
