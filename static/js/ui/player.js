/** A button that plays one sound, and stops it. */

export class Player {
  /** @param {HTMLButtonElement} button @param {(sentence: string) => void} onRefuse */
  constructor(button, onRefuse) {
    this.button = button;
    this.audio = new Audio();
    this.address = '';
    button.addEventListener('click', () => {
      if (this.audio.paused) this.audio.play().catch(() => onRefuse('This browser cannot play the sound; the model can still hear it.'));
      else this.stop();
    });
    for (const event of ['play', 'pause', 'ended']) this.audio.addEventListener(event, () => this.#show());
  }

  /** @param {Blob} file */
  hold(file) {
    this.stop();
    URL.revokeObjectURL(this.address);
    this.address = URL.createObjectURL(file);
    this.audio.src = this.address;
    this.button.hidden = false;
    this.#show();
  }

  stop() {
    this.audio.pause();
    this.audio.currentTime = 0;
  }

  #show() {
    this.button.textContent = this.audio.paused ? 'Play' : 'Stop';
  }
}
