/** Reads NumPy's .npy format, versions 1 to 3, little endian, C order. */

/** A payload that is not the .npy file that was expected. */
export class PayloadError extends Error {}

/** @type {Record<string, {bytes: number, view: (b: ArrayBuffer, o: number, n: number) => import('./types.js').Numbers}>} */
const DTYPES = {
  '|u1': { bytes: 1, view: (b, o, n) => new Uint8Array(b, o, n) },
  '|b1': { bytes: 1, view: (b, o, n) => new Uint8Array(b, o, n) },
  '|i1': { bytes: 1, view: (b, o, n) => new Int8Array(b, o, n) },
  '<i2': { bytes: 2, view: (b, o, n) => new Int16Array(b, o, n) },
  '<u2': { bytes: 2, view: (b, o, n) => new Uint16Array(b, o, n) },
  '<i4': { bytes: 4, view: (b, o, n) => new Int32Array(b, o, n) },
  '<u4': { bytes: 4, view: (b, o, n) => new Uint32Array(b, o, n) },
  '<f4': { bytes: 4, view: (b, o, n) => new Float32Array(b, o, n) },
  '<f8': { bytes: 8, view: (b, o, n) => new Float64Array(b, o, n) },
};

/**
 * @param {ArrayBuffer} buffer
 * @returns {{header: string, offset: number}}
 */
function readHeader(buffer) {
  const view = new DataView(buffer);
  const magic = buffer.byteLength >= 10 && view.getUint8(0) === 0x93
    && new TextDecoder('latin1').decode(new Uint8Array(buffer, 1, 5)) === 'NUMPY';
  if (!magic) throw new PayloadError('not a .npy file: the magic bytes are missing');
  const wide = view.getUint8(6) >= 2;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const start = wide ? 12 : 10;
  if (start + length > buffer.byteLength) throw new PayloadError('the .npy header is cut short');
  return {
    header: new TextDecoder('latin1').decode(new Uint8Array(buffer, start, length)),
    offset: start + length,
  };
}

/**
 * @param {ArrayBuffer} buffer a whole .npy file
 * @returns {import('./types.js').Tensor} a view on the buffer where alignment allows it, else a copy
 */
export function readNpy(buffer) {
  const { header, offset } = readHeader(buffer);
  const descr = /'descr':\s*'([^']+)'/.exec(header)?.[1];
  const shapeText = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1];
  if (!descr || shapeText === undefined) throw new PayloadError(`the .npy header is malformed: ${header.trim()}`);
  if (/'fortran_order':\s*True/.test(header)) throw new PayloadError('a .npy in Fortran order is not supported');
  const dtype = DTYPES[descr];
  if (!dtype) throw new PayloadError(`the .npy type ${descr} is not supported`);
  const shape = shapeText.split(',').filter((part) => part.trim()).map(Number);
  const count = shape.reduce((product, size) => product * size, 1);
  const bytes = count * dtype.bytes;
  if (offset + bytes > buffer.byteLength) {
    throw new PayloadError(`the .npy holds ${buffer.byteLength - offset} bytes, its shape needs ${bytes}`);
  }
  const aligned = offset % dtype.bytes === 0;
  const data = aligned
    ? dtype.view(buffer, offset, count)
    : dtype.view(buffer.slice(offset, offset + bytes), 0, count);
  return { data, shape, dtype: descr };
}
