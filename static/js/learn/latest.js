/** Asking for what moves: one question at a time, and always the last one too. */

export class Latest {
  /** @param {() => Promise<void>} ask asks for what stands now */
  constructor(ask) {
    this.question = ask;
    /** @type {boolean} whether something moved since the last question */
    this.due = false;
    this.asking = false;
  }

  /** Asks, or waits for the answer that is on its way and then asks, whether that one failed or not. */
  async ask() {
    this.due = true;
    if (this.asking) return;
    this.asking = true;
    while (this.due) {
      this.due = false;
      await this.question();
    }
    this.asking = false;
  }
}
