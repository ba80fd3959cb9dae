/** The text as tokens; for cross-attention two of them: the target, which looks, over the source, which is looked at. */
import { el } from './dom.js';
import { SoundStrip } from './soundstrip.js';
import { TokenStrip } from './tokenstrip.js';

/** @typedef {import('../types.js').Token} Token */
/** @typedef {{axes: import('../types.js').Axes, queryText: string, keyText: string, heard: boolean,
 *   frames: number, peaks: number[]}} Shown   frames: how many keys hold sound */
/**
 * @typedef {{label: string, onQuery: (index: number) => void, onKey: (index: number) => void,
 *   onPoint: (index: number | null) => void, onTurn: (next: 'query' | 'key') => void}} Handlers
 */

export class Strips {
  /** @param {HTMLElement} root @param {Handlers} on */
  constructor(root, on) {
    this.root = root;
    const queries = el('div', { class: 'strip-tokens' });
    const keys = el('div', { class: 'strip-tokens' });
    const sound = el('div', { class: 'strip-sound' });
    this.queryNote = el('p', { class: 'soft strip-note' }, 'target, the queries: click who looks');
    this.keyNote = el('p', { class: 'soft strip-note' }, 'source, the keys: click what is looked at');
    this.queries = new TokenStrip(queries, on);
    this.keys = new TokenStrip(keys, { ...on, label: `${on.label}: source`, onQuery: on.onKey, onPoint: () => {}, onTurn: undefined });
    this.sound = new SoundStrip(sound, { onQuery: on.onQuery, onKey: on.onKey });
    root.append(this.queryNote, queries, this.keyNote, keys, sound);
    this.same = true;
    this.heard = false;
  }

  /** @param {Shown} shown */
  render({ axes, queryText, keyText, heard, frames, peaks }) {
    this.same = axes.same;
    this.heard = heard;
    this.queryNote.hidden = this.keyNote.hidden = axes.same;
    this.queries.root.hidden = heard && axes.same;
    this.keys.root.hidden = axes.same || heard;
    this.sound.root.hidden = !heard;
    if (!this.queries.root.hidden) this.queries.render(axes.queries, queryText);
    this.keys.render(this.keys.root.hidden ? [] : axes.keys, keyText);
    if (heard) this.sound.render(axes, frames, peaks);
  }

  /** @param {number} query */
  reveal(query) {
    if (!this.queries.root.hidden) this.queries.reveal(query);
  }

  /**
   * @param {ArrayLike<number>} row weights by key
   * @param {import('../types.js').Transfer} transfer
   * @param {{query: number, key: number}} pick
   */
  shade(row, transfer, pick) {
    if (this.heard) this.sound.shade(row, transfer, pick);
    if (this.same) {
      if (!this.heard) this.queries.shade(row, transfer, pick);
      return;
    }
    this.queries.shade([], transfer, { query: pick.query, key: -1 });
    if (!this.heard) this.keys.shade(row, transfer, { query: -1, key: pick.key });
  }
}
