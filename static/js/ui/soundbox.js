/** The sound that a speech model hears: chosen or dropped, kept in this page's memory alone. */
import { Problem } from '../api.js';
import { find } from './dom.js';

/** A request may hold 8 MB, and base64 writes four bytes for three; a comparison sends the sound twice. */
const MOST_BYTES = 5_800_000;
const PART = 0x8000;
/** Bars of the picture of a sound. */
const PEAKS = 600;

/** @typedef {import('../types.js').Sound} Sound */
/** @typedef {Sound & {name: string, bytes: number, base64: string}} Held */

/** @param {Uint8Array} bytes @returns {boolean} whether they begin as WAV or FLAC files do */
function isSound(bytes) {
  const start = String.fromCharCode(...bytes.slice(0, 12));
  return start.startsWith('fLaC') || (/^(RIFF|RF64)/.test(start) && start.endsWith('WAVE'));
}

/** @param {number} bytes */
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

export class SoundBox {
  /** @param {() => void} onRun @param {(sentence: string) => void} onRefuse */
  constructor(onRun, onRefuse) {
    this.onRun = onRun;
    this.onRefuse = onRefuse;
    this.element = find(document, '[data-testid="sound"]');
    this.words = find(this.element, '[data-testid="sound-name"]');
    /** @type {Held | null} */
    this.held = null;
    const input = /** @type {HTMLInputElement} */ (find(this.element, 'input'));
    input.addEventListener('change', () => {
      if (input.files?.[0]) void this.#take(input.files[0]);
      input.value = '';
    });
    document.addEventListener('dragover', (event) => this.#over(event, true));
    document.addEventListener('dragleave', (event) => this.#over(event, false));
    document.addEventListener('drop', (event) => {
      this.#over(event, false);
      const file = event.dataTransfer?.files[0];
      if (file && !this.element.hidden) void this.#take(file);
    });
  }

  /** @param {DragEvent} event @param {boolean} over */
  #over(event, over) {
    if (this.element.hidden || !event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    this.element.classList.toggle('over', over);
  }

  /** @param {File} file */
  async #take(file) {
    if (file.size > MOST_BYTES) {
      this.onRefuse(`${file.name} has ${megabytes(file.size)}, more than the ${megabytes(MOST_BYTES)} that can be sent: save it with one channel at 16 kHz, or cut it.`);
      return;
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (!isSound(bytes)) {
      this.onRefuse(`${file.name} is neither a WAV nor a FLAC file: save the sound as one of these and choose it again.`);
      return;
    }
    let binary = '';
    for (let i = 0; i < bytes.length; i += PART) binary += String.fromCharCode(...bytes.subarray(i, i + PART));
    const base64 = btoa(binary);
    this.held = { name: file.name, bytes: file.size, base64, ...await picture(bytes) };
    this.words.textContent = `kept in this page, in no link: ${file.name}, ${megabytes(file.size)}`;
    this.words.title = file.name;
    this.onRun();
  }

  /**
   * @param {string} model its name for readers
   * @param {{twice: boolean, linked: boolean}} how twice: the sound goes to two runs at once; linked: a link was opened
   * @returns {string} the file in base64
   * @throws {Problem} where there is none
   */
  content(model, { twice, linked }) {
    if (!this.held) {
      throw new Problem('no-sound', `${model} hears sound, ${linked ? 'and a link carries none' : 'not text'}: choose a WAV or FLAC file, or drop one on this page.`);
    }
    if (twice && this.held.bytes > MOST_BYTES / 2) {
      throw new Problem('large-sound', `${this.held.name} has ${megabytes(this.held.bytes)}, more than the ${megabytes(MOST_BYTES / 2)} that two runs at once can be sent: save it with one channel at 16 kHz, or cut it.`);
    }
    return this.held.base64;
  }
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
