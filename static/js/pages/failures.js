/** What went wrong: said in the banner with what can be done, while the text and the last picture stay. */
import { Problem } from '../api.js';
import { firstPoints, shorten } from '../spans.js';
import { el, find } from '../ui/dom.js';

/** Problems that may be gone at the next try. */
const PASSING = ['unreachable', 'cut', 'fetch-failed', 'model-not-ready', 'busy', 'http'];

export class Failures {
  /** @param {import('./explorer.js').Explorer} page */
  constructor(page) {
    this.page = page;
  }

  /**
   * @param {number} turn
   * @param {unknown} error
   * @param {() => void} again
   */
  show(turn, error, again) {
    const { activity, banner, ran, running } = this.page;
    if (!activity.current(turn) || (error instanceof DOMException && error.name === 'AbortError')) return;
    if (ran && running) this.#outdate(ran.shown);
    if (!ran) this.page.stage.hidden = true;
    if (!(error instanceof Problem)) console.error(error);
    const problem = error instanceof Problem ? error
      : new Problem('page', 'Something in this page went wrong; reload it, and tell us what you did.');
    banner.show(problem.detail, this.#actions(problem, again));
    activity.fail(turn);
  }

  /** @param {Problem} problem @param {() => void} again */
  #actions(problem, again) {
    const { cut, limit } = problem.extra;
    const actions = [];
    if (problem.slug === 'too-long' && cut) actions.push({ label: `Keep the first ${limit} tokens`, act: () => this.#cut(cut) });
    if (PASSING.includes(problem.slug)) actions.push({ label: 'Retry', act: again });
    return actions;
  }

  /** What stays in view is not what was asked for: it is dimmed, and the line above it says so. @param {string} text */
  #outdate(text) {
    this.page.stage.dataset.stale = 'true';
    find(document, '[data-testid="status"]').replaceChildren('Still shown below: the last run that succeeded, of ',
      el('b', {}, `“${shorten(text, 60)}”`));
  }

  /** @param {number} points */
  #cut(points) {
    this.page.text.set(firstPoints(this.page.text.value(), points));
    void this.page.run(true);
  }
}
