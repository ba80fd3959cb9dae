"""Learn pages, whatever the lab: numbers as people write them, words that go with counts, stopping."""

import json
import re
import threading
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from app.learn import TOUR
from tests.browser.atlas import REFUSED
from tests.browser.conftest import Opener
from tests.browser.learn import PHONE, Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1,000", 1000), ("1 000", 1000), ("1\u2009000\u2009000", 1e6), ("1\u202f000", 1000),
        ("1,234.5", 1234.5),
        ("1e3", 1000), ("−5", -5), ("-5", -5), (" 7 ", 7), ("−1,024", -1024), ("2.5e−3", 0.0025), (".5", 0.5),
        ("1.2 · 10⁻³", 0.0012), ("", None), ("abc", None), ("1,00", None), ("1,0000", None), ("0x10", None),
        ("1e999", None), ("Infinity", None), ("1,000 000", None),
    ],
)  # fmt: skip
def test_numbers_are_read_as_pages_print_them(empty: Page, written: str, read: float | None) -> None:
    found = empty.evaluate("async (text) => (await import('/static/js/numbers.js')).numberOf(text)", written)
    assert found == (read if read is None else pytest.approx(read))


def test_what_a_page_prints_it_reads_again(empty: Page) -> None:
    numbers = [0, -1, 1536, -20000, 0.25, -0.0437, 1.5e-7, -2.5e-7, 3.25e12, 123456.75]
    script = """async (numbers) => {
      const { digits, formatted } = await import('/static/js/learn/answers.js');
      const { numberOf } = await import('/static/js/numbers.js');
      const texts = numbers.flatMap((one) => [digits(one), formatted(one, 'integer')]);
      return texts.map((text) => [text, numberOf(text)]);
    }"""
    for text, _ in (found := empty.evaluate(script, numbers)):
        assert "-" not in text
    exact = [read for _, read in found[::2]]
    assert exact == [pytest.approx(one, rel=5e-3) for one in numbers]


def test_a_number_box_takes_what_the_page_prints(learn: Learn) -> None:
    learn.visit("scaling")
    assert learn.set("spread", samples="1,000")["samples"] == 1000
    assert learn.fact("spread", "samples") == "1,000"
    assert learn.set("spread", samples="2e3")["samples"] == 2000
    learn.visit("positions")
    assert learn.set("distance", offset="−5")["offset"] == -5


@pytest.mark.parametrize("written", ["", "abc", "5", "1,000,000", "20.5"])
def test_a_number_box_says_what_it_takes(learn: Learn, written: str) -> None:
    learn.visit("scaling")
    before = learn.fact("spread", "variance")
    learn.set("spread", samples=written, d_k=16)
    assert learn.problem("spread") == "Samples: write a whole number between 10 and 200,000."
    assert learn.fact("spread", "variance") == before
    # What was set beside it is not lost.
    assert learn.set("spread", samples=500)["d_k"] == 16
    assert learn.problem("spread") == ""


def test_a_lab_that_waits_for_run_says_it_too(learn: Learn) -> None:
    learn.visit("block")
    learn.set("gradients", depth="deep")
    assert learn.problem("gradients") == "Depth: write a whole number between 1 and 128."
    learn.set("gradients", depth=2)
    assert learn.problem("gradients") == ""


def test_minus_signs_are_no_hyphens(learn: Learn) -> None:
    learn.visit("attention")
    learn.lab("row")
    cells = learn.page.locator('#row [data-table="stages"] td.number').all_inner_texts()
    assert any(cell.startswith("−") for cell in cells)
    assert not any("-" in cell for cell in cells)
    assert min(map(number, cells)) < 0
    learn.visit("block")
    learn.set("gradients", parts="ffn", depth=40)
    text = learn.lab("gradients").locator(".checks").first.text_content() or ""
    assert re.search(r"−\d", text)
    assert not re.search(r"(?<![\w])-\d", text)


def test_saved_numbers_keep_the_hyphen_that_programs_read(learn: Learn) -> None:
    learn.visit("attention")
    chart = learn.lab("look-up").locator(".chart").first
    chart.locator("summary").click()
    with learn.page.expect_download() as download:
        chart.get_by_role("button", name="Numbers as CSV").click()
    table = download.value.path().read_text("utf-8-sig")
    assert ",-" in table
    assert "−" not in table.split("\n", 1)[1]


def test_words_go_with_their_counts(learn: Learn) -> None:
    learn.visit("block")
    learn.set("gradients", depth=1)
    assert "The same 1 block, wired" in learn.page.locator("#gradients").inner_text()
    learn.set("gradients", depth=2)
    assert "The same 2 blocks, wired" in learn.page.locator("#gradients").inner_text()
    learn.visit("attention")
    learn.set("row", text="Yes no", mask="causal")
    text = learn.page.locator("#row").inner_text()
    forbidden = learn.fact("row", "forbidden")
    assert (
        f"forbids this query {forbidden} {'key' if forbidden == '1' else 'keys'}: what is forbidden" in text
    )
    learn.visit("context")
    learn.lab("senses")
    assert not re.search(r"from \d+ layers? on", learn.page.locator("#senses").inner_text())


@pytest.mark.parametrize(("count", "words"), [(0, "0 keys are"), (1, "1 key is"), (2, "2 keys are")])
def test_words_are_right_for_none_one_and_many(empty: Page, count: int, words: str) -> None:
    said = """async (count) => {
      const { fill } = await import('/static/js/learn/answers.js');
      const { el } = await import('/static/js/ui/dom.js');
      const section = el('p', {}, el('output', { 'data-fact': 'keys.n' }), ' ',
        el('span', { 'data-count': 'keys.n', 'data-one': 'key is' }, 'keys are'));
      // Filled twice: what stands there for many is not lost to a one.
      for (const n of [1, count]) fill(section, { facts: { keys: { n } } }, true);
      return section.textContent;
    }"""
    assert empty.evaluate(said, count) == words


@pytest.mark.parametrize("slug", [page.slug for page in TOUR])
def test_no_formula_is_cut_off_on_a_phone(opened: Opener, server: str, slug: str) -> None:
    learn = opened(server, kind=Learn, **PHONE)
    assert isinstance(learn, Learn)
    learn.visit(slug)
    cut = """() => [...document.querySelectorAll('math')].filter((math) => math.scrollWidth > math.clientWidth
      || [...math.querySelectorAll('*')].some((one) => one.getBoundingClientRect().right > innerWidth))
      .map((math) => [math.closest('section').id, math.scrollWidth, math.clientWidth])"""
    assert [found for found in learn.page.evaluate(cut) if found[1]] == []


def test_a_formula_that_is_too_wide_says_that_it_goes_on(opened: Opener, server: str) -> None:
    learn = opened(server, kind=Learn, **PHONE)
    assert isinstance(learn, Learn)
    learn.visit("heads")
    hint = learn.page.locator("#sum math").evaluate(
        """math => { math.style.maxWidth = '8rem'; math.scrollLeft = 10; const style = getComputedStyle(math);
          const wider = math.scrollWidth > math.clientWidth;
          return [wider, math.scrollLeft, style.overflowX, style.backgroundAttachment]; }"""
    )
    assert hint == [True, 10, "auto", "local, local, scroll, scroll"]


def test_a_legend_stands_in_the_order_of_its_lines(learn: Learn) -> None:
    learn.visit("recurrence")
    learn.lab("gradients")
    learn.page.wait_for_selector("#gradients .chart[data-drawn=plotly] .legendtext")
    order = """node => [...node.querySelectorAll('.legendtext')]
      .map((one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().left, one.textContent])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , text]) => text)"""
    legend = learn.page.locator("#gradients .chart").evaluate(order)
    assert legend[:4] == ["RNN", "LSTM", "GRU", "self-attention"]


def _drag(learn: Learn) -> None:
    tip = learn.page.locator('#rope [data-tip="m"]').last
    tip.scroll_into_view_if_needed()
    tip.focus()
    for _ in range(6):
        learn.page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("fails", [False, True])
def test_the_last_position_of_a_drag_is_always_computed(learn: Learn, fails: bool) -> None:
    learn.tolerate(REFUSED)
    learn.visit("positions")
    start = json.loads(learn.lab("rope").get_attribute("data-view") or "")["m"]
    held: list[Route] = []
    first = threading.Event()

    def hold(route: Route) -> None:
        # The first answer is kept back until all moves are made, and may then be none.
        if first.is_set():
            route.continue_()
        else:
            first.set()
            held.append(route)

    learn.page.route("**/api/labs/rope", hold)
    _drag(learn)
    learn.page.wait_for_timeout(100)
    if fails:
        held[0].fulfill(status=503, json={"type": "urn:attention-atlas:busy", "detail": "Busy: try again."})
    else:
        held[0].continue_()
    learn.page.wait_for_function(
        """m => { const view = JSON.parse(document.querySelector('[data-testid=lab-rope]').dataset.view);
          return view.m === m; }""",
        arg=start + 6,
        timeout=10_000,
    )
    learn.lab("rope")
    assert learn.fact("rope", "m") == str(start + 6)
    assert learn.problem("rope") == ""


def _occupy(server: str) -> Any:
    """Another reader's lab that takes long; closing what comes back ends it."""
    body = json.dumps({"trained": 48, "times": 6, "steps": 400}).encode()
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    request = urllib.request.Request(f"{server}api/labs/past-length", body, headers)
    stream = urllib.request.urlopen(request)
    stream.readline()
    return stream


def test_who_waits_for_another_experiment_is_told_once_and_may_stop(learn: Learn) -> None:
    learn.visit("recurrence")
    quick = learn.set("gradients", distance=8, seeds=1)
    other = _occupy(learn.server)
    lab = learn.page.get_by_test_id("lab-gradients")
    lab.locator(".run-lab").click()
    wait = lab.locator(".lab-wait")
    wait.wait_for(state="visible")
    learn.page.wait_for_function(
        "() => document.querySelector('[data-testid=lab-gradients] .lab-wait').innerText.includes('another')"
    )
    assert wait.inner_text().strip() == "waiting for another experiment to end"
    assert lab.locator(".run-lab").inner_text() == "Stop"
    lab.locator(".run-lab").click()
    said = "Stopped before anything was complete: what is shown is of the run before."
    assert learn.problem("gradients") == said
    other.close()
    assert learn.set("gradients", seed=6)["distance"] == quick["distance"]
    assert learn.problem("gradients") == ""


def test_a_quick_experiment_does_not_wait_behind_a_lengthy_one(learn: Learn) -> None:
    learn.visit("scaling")
    other = _occupy(learn.server)
    assert learn.set("spread", seed=5)["seed"] == 5
    assert learn.problem("spread") == ""
    other.close()


def test_stopping_before_the_first_part_says_so(learn: Learn) -> None:
    learn.visit("positions")
    lab = learn.page.get_by_test_id("lab-past-length")
    lab.scroll_into_view_if_needed()
    for control, value in (("steps", 400), ("trained", 48)):
        box = lab.locator(f'[data-control="{control}"]')
        box.fill(str(value))
        box.blur()
    lab.locator(".run-lab").click()
    learn.page.wait_for_selector("[data-testid=lab-past-length] .lab-wait:not([hidden])")
    lab.locator(".run-lab").click()
    said = "Stopped before anything was complete: there is nothing to show yet."
    assert learn.problem("past-length") == said


def test_stopping_after_the_first_part_keeps_it(learn: Learn) -> None:
    learn.visit("block")
    lab = learn.page.get_by_test_id("lab-gradients")
    for control, value in (("depth", 128), ("repeats", 4)):
        learn.lab("gradients")
        box = lab.locator(f'[data-control="{control}"]')
        box.fill(str(value))
        box.blur()
    lab.locator(".run-lab").click()
    learn.page.wait_for_function(
        "() => document.querySelector('#gradients [data-fact=blocks]').textContent === '128'"
    )
    lab.locator(".run-lab").click()
    said = "Stopped before it was complete: what is shown is what there was by then."
    assert learn.problem("gradients") == said
    assert learn.fact("gradients", "blocks") == "128"


def test_a_layer_s_control_ends_where_the_model_does(learn: Learn) -> None:
    learn.visit("heads")
    learn.set("subspaces", layer=0)
    slider = learn.lab("subspaces").locator(".control input[type=range]").first
    assert slider.get_attribute("max") == "5"
    slider.focus()
    learn.page.keyboard.press("End")
    learn.page.wait_for_function(
        "() => document.querySelector('#subspaces [data-control=layer]').value === '5'"
    )
    learn.lab("subspaces")
    learn.set("subspaces", layer=6)
    assert learn.problem("subspaces") == "Layer: write a whole number between 0 and 5."
    learn.set("subspaces", layer=5, model="smollm2")
    assert slider.get_attribute("max") == "29"
    learn.set("subspaces", layer=29)
    assert learn.problem("subspaces") == ""
