/** The steps from q·k to a weight, with as many digits as it takes for them to add up on screen. */

/** @typedef {import('./types.js').PairAnswer} PairAnswer */
/** @typedef {{dot: string, scale: string, scaled: string, cap: string, capped: string, bias: string, score: string, max: string, shifted: string,
 *   exp: string, sum: string, weight: string}} Shown */

const LEAST = 4;
const MOST = 9;

/** Below this, decimals would leave too few digits to go on with. */
const SMALL = 1e-3;

/**
 * @param {number} value
 * @param {number} digits decimals
 * @param {number} mantissa decimals of the mantissa where the value is small
 */
const decimals = (value, digits, mantissa) => (value !== 0 && value < SMALL ? value.toExponential(mantissa) : value.toFixed(digits));

/** @param {number} value @param {number} digits significant */
const significant = (value, digits) => String(Number(value.toPrecision(digits)));

/**
 * @param {PairAnswer} pair
 * @param {number} digits
 * @returns {Shown}
 */
function shown(pair, digits) {
  const score = pair.score ?? -Infinity;
  const fine = digits + 1;
  return {
    dot: pair.dot.toFixed(digits + 2),
    scale: significant(pair.scale, digits + 4),
    scaled: pair.scaled.toFixed(fine),
    cap: pair.softcap === null ? '' : significant(pair.softcap, digits + 4),
    capped: pair.softcap === null ? '' : capped(pair.scaled, pair.softcap).toFixed(fine),
    bias: pair.bias === 0 ? '0' : pair.bias.toFixed(fine),
    score: Number.isFinite(score) ? score.toFixed(fine) : '−∞',
    max: pair.row_max.toFixed(fine),
    shifted: Number.isFinite(score) ? (Number(score.toFixed(fine)) - Number(pair.row_max.toFixed(fine))).toFixed(fine) : '−∞',
    exp: Number.isFinite(score) ? decimals(Math.exp(score - pair.row_max), digits, digits - 1) : '0',
    sum: pair.row_sum_exp.toFixed(digits),
    weight: Number.isFinite(score) || pair.weight_words ? decimals(pair.weight, 4, 3) : '0',
  };
}

/** @param {number} value @param {string} like @returns {string} the value with the digits of another */
function digitsLike(value, like) {
  if (like.includes('e')) return value.toExponential(like.split('e')[0].length - 2);
  return value.toFixed((like.split('.')[1] ?? '').length);
}

/**
 * @param {Shown} s
 * @param {boolean} open
 * @param {boolean} given the weight does not come from the score
 * @returns {boolean} whether each displayed number follows from the displayed numbers above it
 */
export function addsUp(s, open, given = false) {
  const scaled = digitsLike(Number(s.dot) * Number(s.scale), s.scaled) === s.scaled;
  if (!open) return scaled;
  const scored = scaled
    && (s.cap === '' || digitsLike(capped(Number(s.scaled), Number(s.cap)), s.capped) === s.capped)
    && digitsLike(Number(s.cap === '' ? s.scaled : s.capped) + Number(s.bias), s.score) === s.score;
  if (given) return scored;
  return scored
    && digitsLike(Math.exp(Number(s.shifted)), s.exp) === s.exp
    && digitsLike(Number(s.exp) / Number(s.sum), s.weight) === s.weight;
}

/** Soft-capped scores of Gemma 2 (2024). @param {number} scaled @param {number} cap */
const capped = (scaled, cap) => cap * Math.tanh(scaled / cap);

/**
 * The steps in float64, from the server's dot product on: its float32 steps round in the seventh digit, and what
 * is shown would then miss the next step by one in the last place.
 * @param {PairAnswer} pair
 * @returns {PairAnswer}
 */
function exact(pair) {
  const scaled = pair.dot * pair.scale;
  const before = pair.softcap === null ? scaled : capped(scaled, pair.softcap);
  const score = pair.score === null ? null : before + pair.bias;
  const max = score !== null && pair.score === pair.row_max ? score : pair.row_max;
  return { ...pair, scaled, score, row_max: max };
}

/**
 * @param {PairAnswer} pair
 * @returns {{numbers: Shown, adds: boolean}} adds: the displayed steps lead to the weight that the server gave
 */
export function arithmetic(pair) {
  const steps = exact(pair);
  const open = pair.mask === 'open';
  for (let digits = LEAST; digits <= MOST; digits += 1) {
    const numbers = shown(steps, digits);
    if (addsUp(numbers, open, Boolean(pair.weight_words))) return { numbers, adds: true };
  }
  return { numbers: shown(steps, LEAST), adds: false };
}
