/** Colour scales: straight lines in OKLab, so that equal steps look equal. */

/** @typedef {[number, number, number]} Triple */

/**
 * @param {string} hex '#rrggbb'
 * @returns {Triple} linear light, 0 to 1
 */
function linearLight(hex) {
  const value = parseInt(hex.trim().slice(1), 16);
  return /** @type {Triple} */ ([16, 8, 0].map((shift) => {
    const c = ((value >> shift) & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }));
}

/**
 * OKLab of Björn Ottosson (2020).
 * @param {string} hex
 * @returns {Triple}
 */
function oklab(hex) {
  const [r, g, b] = linearLight(hex);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

/**
 * @param {Triple} lab
 * @returns {Triple} sRGB bytes
 */
function bytes([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const light = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return /** @type {Triple} */ (light.map((c) => {
    const srgb = c <= 0.0031308 ? 12.92 * c : 1.055 * Math.max(c, 0) ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, srgb)));
  }));
}

/**
 * @param {string} from hex colour of zero
 * @param {string} to hex colour of one
 * @returns {(t: number) => Triple}
 */
export function ramp(from, to) {
  const [a, b] = [oklab(from), oklab(to)];
  return (t) => bytes(/** @type {Triple} */ (a.map((start, i) => start + t * (b[i] - start))));
}

/** Weights below this are drawn as nothing on the logarithmic scale. */
export const LOG_FLOOR = 1e-4;

/** How a weight between 0 and 1 becomes a place on the ramp. */
export const TRANSFER = {
  /** @param {number} w */
  power: (w) => w ** 0.7,
  /** @param {number} w */
  linear: (w) => w,
  /** @param {number} w */
  log: (w) => (w <= LOG_FLOOR ? 0 : 1 - Math.log10(w) / Math.log10(LOG_FLOOR)),
};

/** Names of the transfers as a user reads them. */
export const TRANSFER_WORDS = { power: 'weight^0.7', linear: 'linear', log: 'logarithmic' };

/** Weights marked on the legend. */
export const TICKS = {
  power: [0, 0.1, 0.25, 0.5, 1],
  linear: [0, 0.25, 0.5, 0.75, 1],
  log: [0.0001, 0.001, 0.01, 0.1, 1],
};

/** @param {Triple} rgb */
export const css = (rgb) => `rgb(${rgb.join(',')})`;

/**
 * @param {string} from
 * @param {string} to
 * @param {keyof typeof TRANSFER} transfer
 * @returns {Uint32Array} 256 little-endian RGBA pixels, indexed by round(255 · weight)
 */
export function table(from, to, transfer) {
  const colour = ramp(from, to);
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = colour(TRANSFER[transfer](i / 255));
    return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  });
}

/**
 * @param {string} from
 * @param {string} to
 * @param {keyof typeof TRANSFER} transfer
 * @returns {[number, string][]} a Plotly colour scale; stops lie where the transfer bends most
 */
export function stops(from, to, transfer) {
  const colour = ramp(from, to);
  const places = transfer === 'log'
    ? [0, ...Array.from({ length: 41 }, (_, i) => 10 ** (-4 + i / 10))]
    : Array.from({ length: 65 }, (_, i) => (i / 64) ** 2);
  return places.map((w) => [w, css(colour(TRANSFER[transfer](w)))]);
}
