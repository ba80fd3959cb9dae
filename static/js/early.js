// Before the first paint: a remembered theme must not flash the other one.
(() => {
  let remembered = null;
  try {
    remembered = localStorage.getItem('theme');
  } catch { /* storage may be forbidden; the system's theme then holds */ }
  const dark = remembered ? remembered === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  // The address of Explore and of a lab says what is shown: to skip to the content must not change it.
  document.addEventListener('click', (event) => {
    const target = /** @type {Element} */ (event.target);
    if (!target.closest('.skip')) return;
    event.preventDefault();
    document.getElementById('content')?.focus();
  });
})();
