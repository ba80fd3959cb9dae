/** The sound that a speech model hears: one that comes along, or one of the user's own, kept in this page's memory alone. */
import { Problem, fetchRecording } from '../api.js';
import { find } from './dom.js';
import { Player } from './player.js';
import { MOST_BYTES, megabytes, readSound } from './soundfile.js';

/** @typedef {import('../types.js').Recording} Recording */
/** @typedef {import('./soundfile.js').SoundFile & {recording: Recording | null}} Held   recording: where it came along */

export class SoundBox {
  /** @param {Recording[]} recordings @param {() => void} onRun @param {(sentence: string) => void} onRefuse */
  constructor(recordings, onRun, onRefuse) {
    this.recordings = recordings;
    this.onRun = onRun;
    this.onRefuse = onRefuse;
    this.element = find(document, '[data-testid="sound"]');
    this.words = find(this.element, '[data-testid="sound-name"]');
    this.player = new Player(/** @type {HTMLButtonElement} */ (find(this.element, '[data-testid="sound-play"]')), onRefuse);
    /** @type {Held | null} */
    this.held = null;
    const input = /** @type {HTMLInputElement} */ (find(this.element, 'input'));
    input.addEventListener('change', () => {
      if (input.files?.[0]) void this.#take(input.files[0]);
      input.value = '';
    });
    find(this.element, '[data-testid="sound-example"]').addEventListener('click', () => { void this.#example(); });
    document.addEventListener('dragover', (event) => this.#over(event, true));
    document.addEventListener('dragleave', (event) => this.#over(event, false));
    document.addEventListener('drop', (event) => {
      this.#over(event, false);
      const file = event.dataTransfer?.files[0];
      if (file && !this.element.hidden) void this.#take(file);
    });
  }

  /** @returns {string} the name of the recording that is held; empty where it is another sound or none */
  get recording() {
    return this.held?.recording?.name ?? '';
  }

  /** @param {DragEvent} event @param {boolean} over */
  #over(event, over) {
    if (this.element.hidden || !event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    this.element.classList.toggle('over', over);
  }

  /** @param {File} file */
  async #take(file) {
    try {
      this.#hold({ ...await readSound(file.name, file), recording: null }, `kept in this page, in no link: ${file.name}, ${megabytes(file.size)}`);
      this.onRun();
    } catch (error) {
      this.onRefuse(/** @type {Error} */ (error).message);
    }
  }

  async #example() {
    try {
      await this.bring(this.recordings[0].name);
      this.onRun();
    } catch (error) {
      this.onRefuse(/** @type {Error} */ (error).message);
    }
  }

  /**
   * Holds a sound that comes along.
   * @param {string} name
   * @throws {Problem} where there is none of this name, or the server does not answer
   */
  async bring(name) {
    if (name === this.recording) return;
    const recording = this.recordings.find((one) => one.name === name);
    if (!recording) throw new Problem('no-sound', `There is no recording called ${name} here: use the example, or choose a WAV or FLAC file.`);
    const said = `“${recording.said}”`;
    this.#hold({ ...await readSound(said, await fetchRecording(name)), recording }, `${said} ${recording.source} (${recording.licence})`);
  }

  /** @param {Held} held @param {string} words */
  #hold(held, words) {
    this.held = held;
    this.player.hold(held.file);
    this.words.textContent = words;
    this.words.title = words;
  }

  /**
   * @param {string} model its name for readers
   * @param {{twice: boolean, linked: boolean}} how twice: the sound goes to two runs at once; linked: a link was opened
   * @returns {{recording: string} | {audio: string}} the name of a recording, or a file in base64
   * @throws {Problem} where there is none
   */
  content(model, { twice, linked }) {
    if (!this.held) {
      throw new Problem('no-sound', `${model} hears sound, ${linked ? 'and a link carries none but the example' : 'not text'}: choose a WAV or FLAC file, drop one on this page, or use the example.`);
    }
    if (this.held.recording) return { recording: this.held.recording.name };
    if (twice && this.held.bytes > MOST_BYTES / 2) {
      throw new Problem('large-sound', `${this.held.name} has ${megabytes(this.held.bytes)}, more than the ${megabytes(MOST_BYTES / 2)} that two runs at once can be sent: save it with one channel at 16 kHz, or cut it.`);
    }
    return { audio: this.held.base64 };
  }
}
