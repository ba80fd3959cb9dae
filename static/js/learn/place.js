/** Where the reader is on a page: held while the labs above it grow, and found again on coming back. */

/** @typedef {{id: string, by: number}} Mark   a section, and pixels from its top to the window's */

/** Milliseconds without scrolling before the place is remembered: browsers refuse to do so too often. */
const REST = 150;

export class Place {
  constructor() {
    history.scrollRestoration = 'manual';
    /** What stays where it is until the reader scrolls. @type {{element: Element, by: number} | null} */
    this.pinned = null;
    this.top = 0;
    this.height = 0;
    this.timer = 0;
    new ResizeObserver(() => this.#hold()).observe(document.body);
    for (const kind of ['wheel', 'touchstart', 'pointerdown', 'keydown']) window.addEventListener(kind, () => { this.pinned = null; }, { passive: true, capture: true });
    window.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    window.addEventListener('pagehide', () => this.remember());
  }

  /** @param {Element} element @param {number} [by] pixels below its top */
  pin(element, by = 0) {
    this.pinned = { element, by };
    this.#hold();
  }

  #hold() {
    if (!this.pinned) return;
    const { element, by } = this.pinned;
    const margin = parseFloat(getComputedStyle(element).scrollMarginTop) || 0;
    window.scrollTo({ top: window.scrollY + element.getBoundingClientRect().top - (by ? 0 : margin) + by, behavior: 'instant' });
    [this.top, this.height] = [window.scrollY, document.documentElement.scrollHeight];
  }

  #scrolled() {
    // Other ways to scroll than those above: a search in the page, a screen reader.
    if (this.pinned && Math.abs(window.scrollY - this.top) > 2 && document.documentElement.scrollHeight === this.height) this.pinned = null;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.remember(), REST);
  }

  /** Keeps in this step of the history which section is read. */
  remember() {
    const above = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('section[id]'))].filter((section) => section.getBoundingClientRect().top < 100);
    const section = above[above.length - 1];
    const place = section ? { id: section.id, by: Math.round(-section.getBoundingClientRect().top) } : null;
    history.replaceState({ ...history.state, place }, '');
  }

  /** @returns {boolean} whether this step of the history had a place, and it is shown */
  restore() {
    /** @type {Mark | null | undefined} */
    const place = history.state?.place;
    if (place === undefined) return false;
    const element = place && document.getElementById(place.id);
    if (element) this.pin(element, place.by);
    else window.scrollTo({ top: 0, behavior: 'instant' });
    return true;
  }
}
