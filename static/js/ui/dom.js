/** Elements, made without HTML: every text is set as text. */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes] null and false are left out
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children);
  return node;
}

/**
 * @template {Element} [T=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {T}
 */
export function find(root, selector) {
  const node = root.querySelector(selector);
  if (!node) throw new Error(`the page lacks ${selector}`);
  return /** @type {T} */ (/** @type {unknown} */ (node));
}

/**
 * A canvas of so many CSS pixels, sharp on dense screens.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @returns {CanvasRenderingContext2D} one unit is one CSS pixel
 */
export function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** A coloured word of the query, key or value. @param {string} role @param {string} text */
export const role = (role, text) => el('bdi', { class: `role ${role}` }, text);

/** A word of any script, which must not turn its neighbours round. @param {string} text @param {string} [kind] */
export const word = (text, kind) => el('bdi', { class: kind }, text);

/**
 * Resolves once what was drawn before is on the screen.
 * @returns {Promise<void>}
 */
export const painted = () => new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
});
