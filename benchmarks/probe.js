/** Clocks inside the page: milliseconds until what was asked for is on the screen. Runs before the page's own scripts. */
window.bench = (() => {
  const painted = () => new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
  });

  /** Resolves when the page says that all it was asked for is painted. */
  const ready = () => new Promise((resolve, reject) => {
    const root = document.documentElement;
    const look = () => {
      if (root.dataset.state === 'idle' || root.dataset.state === 'busy') return;
      observer.disconnect();
      if (root.dataset.state === 'ready') resolve(performance.now());
      else reject(new Error(document.querySelector('[data-testid="problem"]')?.textContent ?? root.dataset.state));
    };
    const observer = new MutationObserver(look);
    observer.observe(root, { attributes: true, attributeFilter: ['data-state'] });
    look();
  });

  /** Resolves when the first thumbnails have come and had two frames to be painted in. */
  const thumbnails = () => new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => {
      if (!list.getEntries().some((entry) => entry.name.includes('/overview/'))) return;
      observer.disconnect();
      resolve(painted());
    });
    observer.observe({ type: 'resource' });
  });

  /** Pastes and runs a text. */
  async function run(text) {
    const box = document.querySelector('[data-testid="text"]');
    const first = thumbnails();
    const start = performance.now();
    box.value = text;
    box.dispatchEvent(new Event('input', { bubbles: true }));
    document.querySelector('[data-testid="ask"]').requestSubmit();
    const complete = await ready() - start;
    return { complete, first: await first - start };
  }

  async function choose(layer, head) {
    const start = performance.now();
    document.querySelector(`[data-testid="head-${layer}-${head}"]`).click();
    return await ready() - start;
  }

  /** Script, style and layout of one move of the pointer over the matrix: what must fit into a frame. */
  function hover(across, down) {
    const cells = document.querySelector('[data-testid="cells"]');
    const bounds = cells.getBoundingClientRect();
    const [clientX, clientY] = [bounds.left + across * bounds.width, bounds.top + down * bounds.height];
    const start = performance.now();
    cells.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY, bubbles: true }));
    document.body.getBoundingClientRect();
    return performance.now() - start;
  }

  /** Since the address was opened: until overview and matrix are painted and heads can be chosen. */
  async function opened() {
    const there = () => document.querySelector('[data-testid="matrix"][data-drawn]') && document.querySelector('[data-testid="head-0-0"]');
    while (!there()) await new Promise((resolve) => { requestAnimationFrame(resolve); });
    return painted();
  }

  /**
   * Since a Learn page was opened: until its first lab was asked, had answered, was painted, and was painted by Plotly.
   * Its picture is every chart of the lab, and what the widgets of its section draw.
   */
  async function lesson() {
    const LIMIT_MS = 60_000;
    const lab = () => document.querySelector('.lab');
    const parts = (selector, root) => [...root?.querySelectorAll(selector) ?? []];
    const charts = () => parts('[data-chart]', lab());
    const widgets = () => parts('[data-widget]', lab()?.closest('section'));
    const answered = () => lab()?.closest('section').dataset.answered === 'true' && charts().length + widgets().length > 0;
    const drawn = () => answered() && charts().every((chart) => chart.dataset.drawn) && widgets().every((widget) => widget.childElementCount);
    const complete = () => window.Plotly && lab().dataset.state === 'ready' && charts().every((chart) => chart.dataset.drawn === 'plotly');
    const until = async (there) => {
      while (!there()) {
        if (lab()?.dataset.state === 'error') throw new Error(lab().querySelector('.lab-problem').textContent);
        if (performance.now() > LIMIT_MS) throw new Error(`no picture of the first lab within ${LIMIT_MS} ms`);
        await new Promise((resolve) => { requestAnimationFrame(resolve); });
      }
      return painted();
    };
    const times = { first: await until(drawn), complete: await until(complete) };
    const request = performance.getEntriesByType('resource').find(({ name }) => name.endsWith(`/api/labs/${lab().dataset.lab}`));
    return { ...times, asked: request.startTime, answered: Math.min(request.responseEnd, times.first) };
  }

  /** Since the address was opened: until so many lines are drawn and painted. BertViz draws one for each weight. */
  async function lines(count) {
    const drawn = document.getElementsByTagName('line');
    while (drawn.length < count) await new Promise((resolve) => { setTimeout(resolve, 10); });
    return painted();
  }

  return { run, choose, hover, opened, lesson, lines, ready };
})();
