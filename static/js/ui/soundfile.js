/** A sound file as the page holds it: its bytes for the server, and what the browser can tell of it. */
import { Problem } from '../api.js';

/** A request may hold 8 MB, and base64 writes four bytes for three; a comparison sends the sound twice. */
export const MOST_BYTES = 5_800_000;
const PART = 0x8000;
/** Bars of the picture of a sound. */
const PEAKS = 600;

/** @typedef {import('../types.js').Sound} Sound */
/** @typedef {Sound & {name: string, bytes: number, base64: string, file: Blob}} SoundFile */

/** @param {Uint8Array} bytes @returns {boolean} whether they begin as WAV or FLAC files do */
function isSound(bytes) {
  const start = String.fromCharCode(...bytes.slice(0, 12));
  return start.startsWith('fLaC') || (/^(RIFF|RF64)/.test(start) && start.endsWith('WAVE'));
}

/** @param {number} bytes */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/**
 * @param {string} name for readers
 * @param {Blob} file
 * @returns {Promise<SoundFile>}
 * @throws {Problem} for a file that is too large, or no sound
 */
export async function readSound(name, file) {
  if (file.size > MOST_BYTES) {
    throw new Problem('large-sound', `${name} has ${megabytes(file.size)}, more than the ${megabytes(MOST_BYTES)} that can be sent: save it with one channel at 16 kHz, or cut it.`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (!isSound(bytes)) {
    throw new Problem('no-sound', `${name} is neither a WAV nor a FLAC file: save the sound as one of these and choose it again.`);
  }
  let binary = '';
  for (let i = 0; i < bytes.length; i += PART) binary += String.fromCharCode(...bytes.subarray(i, i + PART));
  const base64 = btoa(binary);
  return { name, bytes: file.size, base64, file, ...await picture(bytes) };
}

/**
 * What the browser can tell of a sound without the server; nothing where it cannot read it.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Promise<Sound>}
 */
async function picture(bytes) {
  try {
    const decoded = await new OfflineAudioContext(1, 1, 16000).decodeAudioData(bytes.buffer);
    const samples = decoded.getChannelData(0);
    const most = Math.max(1e-6, samples.reduce((top, sample) => Math.max(top, Math.abs(sample)), 0));
    const peaks = Array.from({ length: PEAKS }, (_, i) => {
      const part = samples.subarray(Math.floor((i * samples.length) / PEAKS), Math.ceil(((i + 1) * samples.length) / PEAKS));
      return part.reduce((top, sample) => Math.max(top, Math.abs(sample)), 0) / most;
    });
    return { seconds: decoded.duration, peaks };
  } catch {
    return { seconds: null, peaks: [] };
  }
}
