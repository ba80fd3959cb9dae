"""What all Learn pages share: the tour, labs that run when seen, links, saved numbers, errors, barriers."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import axe_playwright_python
import pytest
from playwright.sync_api import Page, ViewportSize

from app.learn import TOUR
from tests.browser.atlas import REFUSED
from tests.browser.conftest import Opener
from tests.browser.learn import Learn

pytestmark = [pytest.mark.browser, pytest.mark.weights, pytest.mark.usefixtures("family_weights")]

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
PHONE: ViewportSize = {"width": 390, "height": 844}


def barriers(page: Page) -> list[dict[str, Any]]:
    """What axe-core finds: rule, how bad, the first elements."""
    page.evaluate(AXE)
    found = page.evaluate("async () => (await axe.run()).violations")
    return [{"id": one["id"], "where": [node["target"] for node in one["nodes"][:3]]} for one in found]


def see_everything(learn: Learn) -> None:
    """Brings every lab into view and waits for it."""
    for testid in learn.page.locator(".lab").evaluate_all(
        "nodes => nodes.map((node) => node.dataset.testid)"
    ):
        learn.lab(testid.removeprefix("lab-"))


def test_the_contents_lead_to_every_page_and_pages_to_their_neighbours(learn: Learn) -> None:
    learn.page.goto(f"{learn.server}learn")
    assert barriers(learn.page) == []
    learn.page.get_by_role("link", name=TOUR[0].title).click()
    for page in TOUR[1:]:
        learn.page.locator('[rel="next"]').click()
        learn.page.wait_for_url(f"**/learn/{page.slug}")
    assert learn.page.locator('[rel="next"]').get_attribute("href") == "/"


@pytest.mark.parametrize("slug", [page.slug for page in TOUR])
def test_a_whole_page(learn: Learn, opened: Opener, slug: str) -> None:
    """All labs of a page answer once; what must hold then is held against that one visit."""
    learn.visit(slug)
    see_everything(learn)
    _nothing_is_missing(learn)
    _no_barriers(learn)
    _fits_a_phone(learn)
    _links_open_explore_in_a_state_it_takes(learn, opened)


def _nothing_is_missing(learn: Learn) -> None:
    assert learn.page.locator(".lab-problem:visible").all_inner_texts() == []
    assert learn.page.locator(".lab").count() > 0
    for lab in learn.page.locator(".lab").all():
        drawn = lab.locator(".chart[data-drawn]").count()
        assert drawn or lab.locator("xpath=ancestor::section").locator("[data-widget], [data-table]").count()
    empty = """found => found.filter((one) => !one.textContent && one.checkVisibility())
      .map((one) => one.outerHTML)"""
    assert learn.page.locator("[data-fact]").evaluate_all(empty) == []
    assert learn.page.locator("[data-holds=false]").all_inner_texts() == []


def _no_barriers(learn: Learn) -> None:
    assert barriers(learn.page) == []
    learn.page.get_by_test_id("theme").click()
    assert barriers(learn.page) == []


def _fits_a_phone(learn: Learn) -> None:
    learn.page.set_viewport_size(PHONE)
    learn.page.wait_for_function("() => document.documentElement.scrollWidth <= window.innerWidth")


def _links_open_explore_in_a_state_it_takes(learn: Learn, opened: Opener) -> None:
    links = learn.page.locator("a.see").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('href'))"
    )
    assert links
    for link in links:
        address = urlparse(link)
        if address.path != "/" or not address.fragment:
            assert link.startswith(("/", "#"))
            continue
        explore = opened(learn.server).open(link.removeprefix("/"))
        assert explore.state == "ready", link
        assert not explore.find("problem").is_visible(), link
        explore.page.close()


def test_settings_come_back_from_the_address(learn: Learn, opened: Opener) -> None:
    learn.visit("scaling")
    learn.set("spread", d_k=16, rule="none")
    other = opened(learn.server, kind=Learn)
    other.page.goto(learn.page.url)
    assert isinstance(other, Learn)
    ran = json.loads(other.lab("spread").get_attribute("data-view") or "")
    assert (ran["d_k"], ran["rule"]) == (16, "none")
    assert other.check("spread", "variance of q·k")["expected"] == 16


def test_what_is_no_number_is_said_and_the_rest_stays(learn: Learn) -> None:
    learn.visit("scaling")
    learn.set("spread", seed="seven")
    assert learn.problem("spread") == "Seed: write a whole number between 0 and 4,294,967,295."
    assert learn.lab("spread").get_attribute("data-state") == "error"
    assert learn.charts("spread")
    learn.set("spread", seed=7)
    assert learn.problem("spread") == ""


def test_numbers_and_pictures_can_be_saved(learn: Learn) -> None:
    learn.visit("scaling")
    chart = learn.lab("spread").locator(".chart").first
    learn.page.wait_for_selector(".chart[data-drawn=plotly]")
    for label, first in (
        ("Numbers as CSV", b"\xef\xbb\xbf"),
        ("Numbers as JSON", b"{"),
        ("Picture as PNG", b"\x89PNG"),
        ("Picture as SVG", b"<svg"),
    ):
        chart.locator("summary").click()
        with learn.page.expect_download() as download:
            chart.get_by_role("button", name=label).click()
        assert Path(download.value.path()).read_bytes().startswith(first)


def test_the_plain_drawing_stands_where_plotly_cannot_come(opened: Opener, server: str) -> None:
    learn = opened(server, kind=Learn)
    assert isinstance(learn, Learn)
    learn.tolerate(REFUSED)
    learn.page.route("**/vendor/plotly*", lambda route: route.fulfill(status=404))
    learn.visit("scaling")
    assert learn.page.locator('.chart[data-drawn="canvas"]').count() > 0


def test_equal_words_keep_places_of_their_own(learn: Learn) -> None:
    learn.visit("scaling")
    figure = learn.page.evaluate("""async () => {
      const { chartFigure } = await import('/static/js/figures/chart.js');
      const { palette } = await import('/static/js/ui/theme.js');
      const axis = { label: 'token', log: false };
      const series = { id: 'm', title: 't', kind: 'matrix', x: axis, y: axis, columns: ['the', 'cat', 'the'],
        rows: ['the', 'the'], values: [[1, 2, 3], [4, 5, 6]], unit: 'u', diverging: false };
      return chartFigure(series, { palette: palette(), width: 300, height: 300 });
    }""")
    drawn = figure["data"][0]
    assert len(set(drawn["x"])) == 3
    assert len(set(drawn["y"])) == 2
    assert [word.rstrip("\u200b") for word in drawn["x"]] == ["the", "cat", "the"]
    assert len(figure["layout"]["xaxis"]["tickvals"]) == 3


def test_another_text_or_model_without_the_picked_places_shows_its_first_ones(learn: Learn) -> None:
    learn.tolerate(REFUSED)
    learn.visit("attention")
    name = learn.page.locator(".lab").first.get_attribute("data-testid")
    assert name is not None
    lab = name.removeprefix("lab-")
    learn.set(lab, text="Yes")
    assert learn.problem(lab) == ""
    assert "query 0 is shown" in learn.lab(lab).locator(".notes").inner_text()
    assert learn.checks(lab)
