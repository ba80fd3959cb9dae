"""When the benchmark takes a Learn page's first picture for painted; how long it takes is no matter here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Route

pytestmark = pytest.mark.browser

PROBE = Path(__file__).parents[2] / "benchmarks" / "probe.js"
ADDRESS = "http://lesson.test/"
LESSON = """<!doctype html><title>lesson</title>
<section><div data-widget="heads"></div>
<div class="lab" data-lab="heads" data-state="busy"><figure data-chart="one"></figure>
<p class="lab-problem"></p></div></section>
<section><div class="lab" data-lab="other"><figure data-chart="later"></figure></div></section>"""
DRAW = """async (last) => {
  const [section, lab, chart, widget] = ['section', '.lab', '[data-chart]', '[data-widget]']
    .map((one) => document.querySelector(one));
  const steps = {
    answer: () => { section.dataset.answered = 'true'; },
    chart: () => { chart.dataset.drawn = 'canvas'; },
    widget: () => { widget.append(document.createElement('svg')); },
  };
  const frames = async () => {
    for (let i = 0; i < 6; i += 1) await new Promise((resolve) => { requestAnimationFrame(resolve); });
    return performance.now();
  };
  await fetch('/api/labs/heads', { method: 'POST' });
  const found = bench.lesson();
  for (const [name, step] of Object.entries(steps)) if (name !== last) step();
  const before = await frames();
  steps[last]();
  const after = await frames();
  Object.assign(window, { Plotly: {} });
  chart.dataset.drawn = 'plotly';
  lab.dataset.state = 'ready';
  return { ...await found, before, after };
}"""
FAIL = """() => {
  document.querySelector('.lab-problem').textContent = 'There is no head 99.';
  document.querySelector('.lab').dataset.state = 'error';
  return bench.lesson();
}"""


@pytest.fixture
def lesson(browser: Browser) -> Iterator[Page]:
    """A page like those of the tour, without a server: nothing is drawn yet."""
    page = browser.new_page()
    page.add_init_script(path=PROBE)
    page.route("**/*", answer)
    page.goto(ADDRESS)
    yield page
    page.close()


def answer(route: Route) -> None:
    if "/api/labs/" in route.request.url:
        route.fulfill(body="{}", content_type="application/json")
    else:
        route.fulfill(body=LESSON, content_type="text/html")


@pytest.mark.parametrize("last", ["answer", "chart", "widget"])
def test_the_first_picture_is_all_that_the_first_section_draws(lesson: Page, last: str) -> None:
    times: dict[str, Any] = lesson.evaluate(DRAW, last)
    assert 0 < times["asked"] <= times["answered"] <= times["before"]
    assert times["before"] < times["first"] <= times["after"] < times["complete"]


def test_a_lab_that_fails_is_no_picture(lesson: Page) -> None:
    with pytest.raises(Error, match="There is no head 99"):
        lesson.evaluate(FAIL)
