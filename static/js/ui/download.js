/** Files that leave the page. */

/** @param {string} name @param {BlobPart} content @param {string} type */
export function save(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * A spreadsheet runs a cell that begins with = + - @ as a formula; a leading quote keeps it a text.
 * @param {string | number} cell
 */
function csvCell(cell) {
  if (typeof cell === 'number') return String(cell);
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return `"${safe.replace(/"/g, '""')}"`;
}

/** @param {(string | number)[][]} rows @returns {string} RFC 4180, with a byte order mark so that spreadsheets read UTF-8 */
export const csv = (rows) => `\ufeff${rows.map((row) => row.map(csvCell).join(',')).join('\r\n')}\r\n`;

/** @param {string} url a data URL, as Plotly makes it @param {string} stem @param {'png' | 'svg'} format */
export function saveImage(url, stem, format) {
  const [head, body] = [url.slice(0, url.indexOf(',')), url.slice(url.indexOf(',') + 1)];
  const content = head.includes('base64') ? Uint8Array.from(atob(body), (c) => c.charCodeAt(0)) : decodeURIComponent(body);
  save(`${stem}.${format}`, content, format === 'png' ? 'image/png' : 'image/svg+xml');
}

const STYLED = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'font-family', 'font-size', 'font-weight'];

/**
 * @param {SVGSVGElement} svg as it stands in the page
 * @returns {string} a file of its own, the page's style written into it
 */
export function svgFile(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const [from, to] = [svg.querySelectorAll('*'), copy.querySelectorAll('*')];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of STYLED) to[i].setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute('width', String(Math.round(width)));
  copy.setAttribute('height', String(Math.round(height)));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}`;
}

/** @param {HTMLCanvasElement} canvas @param {string} name */
export function savePng(canvas, name) {
  canvas.toBlob((blob) => { if (blob) save(name, blob, 'image/png'); }, 'image/png');
}
