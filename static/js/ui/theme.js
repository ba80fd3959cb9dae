/** Light and dark: the system's choice until the user makes one. */

/** @returns {import('../types.js').Palette} the colours in force, as CSS has them */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    panel: read('panel'), ink: read('ink'), soft: read('soft'), line: read('line'), hatch: read('hatch'),
    hatchLine: read('hatch-line'), query: read('query'), key: read('key'), value: read('value'),
    deep: read('deep'), change: read('change'), accent: read('accent'), shade: read('shade'),
  };
}

/** @param {string} theme */
function remember(theme) {
  try {
    localStorage.setItem('theme', theme);
  } catch { /* storage may be forbidden; the choice then lasts as long as the page */ }
}

/** @param {() => void} onChange called after the colours have changed */
export function wireTheme(onChange) {
  const root = document.documentElement;
  const button = /** @type {HTMLElement} */ (document.querySelector('[data-testid="theme"]'));
  const apply = (/** @type {string} */ theme) => {
    root.dataset.theme = theme;
    onChange();
  };
  button.addEventListener('click', () => {
    const theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
    remember(theme);
    apply(theme);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => {
    let chosen = null;
    try {
      chosen = localStorage.getItem('theme');
    } catch { /* as above */ }
    if (!chosen) apply(event.matches ? 'dark' : 'light');
  });
}
