/** A Learn page: its labs run when they come into view, and its address holds what was set. */
import { keepWhole } from '../learn/answers.js';
import { Lab } from '../learn/lab.js';
import { Place } from '../learn/place.js';
import { find } from '../ui/dom.js';
import { plotly } from '../ui/plotly.js';
import { wireTheme } from '../ui/theme.js';

/** @typedef {{default_model: string, labs: Record<string, import('../learn/types.js').Spec>}} Boot */

const boot = /** @type {Boot} */ (JSON.parse(find(document, '#boot').textContent ?? ''));
const root = document.documentElement;
const place = new Place();
/** @type {Lab[]} */
const labs = [];
let pending = 0;
let failed = false;

const page = {
  defaultModel: boot.default_model,
  onBusy() {
    pending += 1;
    root.dataset.state = 'busy';
  },
  /** @param {boolean} failure */
  onSettled(failure) {
    pending -= 1;
    failed = failure;
    if (pending > 0) return;
    root.dataset.view = JSON.stringify(labs.map((lab) => lab.root.dataset.view ?? ''));
    root.dataset.state = failed ? 'error' : 'ready';
  },
  /** Plotly comes once the first picture is painted. */
  onPicture() {
    plotly().then(redraw, () => { /* the plain drawings stay, and their numbers can be saved */ });
    page.onPicture = () => {};
  },
  /** @param {Lab} lab */
  onValues(lab) {
    if (lab.address && lab.address !== location.hash) history.replaceState(history.state, '', lab.address);
  },
};

function redraw() {
  for (const lab of labs) lab.redraw();
}

/** Every lab of a section after the first has a number in its name. */
function build() {
  /** @type {Map<string, number>} */
  const seen = new Map();
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('.lab'))) {
    const section = element.closest('section')?.id ?? 'lab';
    const count = (seen.get(section) ?? 0) + 1;
    seen.set(section, count);
    labs.push(new Lab(element, boot.labs[element.dataset.lab ?? ''], count === 1 ? section : `${section}-${count}`, page));
  }
}

async function widgets() {
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-widget]'))) {
    const lab = labs.find((one) => one.section.contains(element));
    if (!lab) continue;
    const { default: widget } = await import(`../learn/${element.dataset.widget}.js`);
    widget(element, lab);
  }
}

/** Shows what the address says: a section, and perhaps what one of its labs is set to. */
function visit() {
  const [id, query] = location.hash.slice(1).split('?', 2);
  const lab = labs.find((one) => one.id === id);
  const target = document.getElementById(id) ?? lab?.root;
  if (!place.restore() && target) place.pin(target);
  if (!lab || (query === undefined && !lab.begun) || (lab.begun && (lab.address ?? `#${id}`) === location.hash)) return;
  void lab.set({ ...lab.initial, ...given(lab, query) });
}

/** @param {Lab} lab @param {string | undefined} query @returns {Record<string, any>} */
function given(lab, query) {
  const { properties } = lab.spec.parameters;
  const read = (/** @type {string} */ name, /** @type {string} */ text) => {
    if (typeof lab.initial[name] === 'string') return text;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  };
  return Object.fromEntries([...new URLSearchParams(query ?? '')].filter(([name]) => name in properties).map(([name, text]) => [name, read(name, text)]));
}

/** A link to another section leaves what is set there as it is. */
function follow() {
  document.addEventListener('click', (event) => {
    const link = /** @type {Element} */ (event.target).closest?.('a[href^="#"]:not(.here)');
    const id = link?.getAttribute('href')?.slice(1) ?? '';
    const target = id && document.getElementById(id);
    if (!target || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    place.remember();
    history.pushState(null, '', `#${id}`);
    place.pin(target);
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
  });
}

/** The page that is read is in view among those of the tour. */
function current() {
  const strip = document.querySelector('.tour-side ol');
  const here = /** @type {HTMLElement | null | undefined} */ (strip?.querySelector('[aria-current]'));
  if (!strip || !here) return;
  const [all, one] = [strip.getBoundingClientRect(), here.getBoundingClientRect()];
  strip.scrollLeft += one.left - all.left - (all.width - one.width) / 2;
}

function watch() {
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const lab = labs.find((one) => one.root === entry.target);
      if (!entry.isIntersecting || !lab) continue;
      seen.unobserve(entry.target);
      if (!lab.begun && !lab.asked) void lab.run();
    }
  }, { rootMargin: '200px 0px' });
  for (const lab of labs) seen.observe(lab.root);
}

function resized() {
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    redraw();
  });
}

wireTheme(redraw);
build();
keepWhole(find(document, 'main'));
current();
void widgets();
visit();
follow();
window.addEventListener('hashchange', visit);
if (labs[0] && !labs[0].begun && !labs[0].asked) void labs[0].run();
if (!labs.length || labs[0].asked) root.dataset.state = 'ready';
watch();
resized();
