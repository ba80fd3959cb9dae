// Before the first paint: a remembered theme must not flash the other one.
(() => {
  let remembered = null;
  try {
    remembered = localStorage.getItem('theme');
  } catch { /* storage may be forbidden; the system's theme then holds */ }
  const dark = remembered ? remembered === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
})();
