/** The way back from Explore to the section of a Learn page that led here. */
const [slug, section] = (new URLSearchParams(location.search).get('from') ?? '').split('.', 2);
const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector('[data-testid="back"]'));
// Only what is a page of the tour by its form: the address may have been written by anybody.
if (link && /^[a-z-]+$/.test(slug) && /^[a-z0-9-]+$/.test(section ?? '')) {
  const title = slug[0].toUpperCase() + slug.slice(1);
  link.href = `/learn/${slug}#${section}`;
  link.textContent = `← back to ${title}`;
  link.hidden = false;
}
export {};
