"""Around the labs of Learn pages: places, sliders, links, old results, tables, axes, colours, saved files."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from app.learn import TOUR
from tests.browser.conftest import Opener
from tests.browser.learn import PHONE, Learn

pytestmark = [pytest.mark.browser, pytest.mark.weights]


@pytest.mark.parametrize(
    ("path", "section"),
    [("block#switches", "switches"), ("recurrence#paths?length=20", "paths"), ("families#laws", "laws")],
)
@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_a_link_into_a_section_ends_there(
    opened: Opener, server: str, path: str, section: str, options: dict[str, Any]
) -> None:
    learn = opened(server, kind=Learn, **options)
    assert isinstance(learn, Learn)
    learn.visit(path.split("#", maxsplit=1)[0], f"#{path.split('#')[1]}")
    learn.page.wait_for_selector(f"#{section} .chart[data-drawn=plotly]")
    # Labs above, and those around it, have come meanwhile.
    learn.page.wait_for_selector("html[data-state=ready]", state="attached")
    learn.page.wait_for_timeout(300)
    top = learn.page.evaluate(f"document.getElementById('{section}').getBoundingClientRect().top")
    end = learn.page.evaluate("document.documentElement.scrollHeight - innerHeight - scrollY")
    assert abs(top) < 12 or end < 2


def test_who_scrolls_is_not_pulled_back(learn: Learn) -> None:
    learn.visit("block", "#switches")
    learn.page.wait_for_selector("#switches .chart[data-drawn]")
    learn.page.mouse.wheel(0, -900)
    learn.page.wait_for_function(
        "() => document.getElementById('switches').getBoundingClientRect().top > 700"
    )
    learn.page.evaluate("document.querySelector('#walk').style.paddingTop = '50px'")
    learn.page.wait_for_timeout(200)
    assert learn.page.evaluate("document.getElementById('switches').getBoundingClientRect().top") > 600


def test_back_from_explore_is_where_one_left(learn: Learn) -> None:
    learn.visit("positions")
    learn.lab("learned")
    link = learn.page.locator("#learned a.see")
    link.scroll_into_view_if_needed()
    learn.page.wait_for_selector("html[data-state=ready]", state="attached")
    learn.page.wait_for_timeout(300)
    box = link.bounding_box()
    link.click()
    back = learn.page.get_by_test_id("back")
    back.wait_for(state="visible")
    assert back.inner_text() == "← back to Positions"
    assert back.get_attribute("href") == "/learn/positions#learned"
    learn.settled()
    learn.page.go_back()
    learn.page.wait_for_selector("#learned .chart[data-drawn=plotly]")
    learn.page.wait_for_timeout(500)
    again = link.bounding_box()
    assert box is not None
    assert again is not None
    assert abs(again["y"] - box["y"]) < 12


@pytest.mark.parametrize("origin", ["", "?from=//evil.example.x", "?from=javascript:alert(1).a", "?from=x"])
def test_explore_names_no_way_back_that_is_none(opened: Opener, server: str, origin: str) -> None:
    explore = opened(server).open(origin)
    assert not explore.find("back").is_visible()


def test_the_first_tab_stop_leads_to_the_content(opened: Opener, server: str) -> None:
    for path in ("", "learn", "learn/heads", "docs"):
        page = opened(server).page
        page.goto(f"{server}{path}")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "to the content"
        address = page.url
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.tagName") == "MAIN"
        assert page.url.split("#")[0] == address.split("#")[0]
        assert "content" not in page.url


STOPS = """async (schema) => (await import('/static/js/learn/slider.js')).stops(schema)"""


@pytest.mark.parametrize(
    ("schema", "holds"),
    [
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 100, "default": 1}, [100]),
        ({"type": "number", "minimum": 0, "maximum": 1000, "default": 1}, [0, 1000]),
        ({"type": "number", "minimum": -10, "maximum": 10, "default": -1}, [-10, 0, 10]),
        ({"type": "number", "minimum": 1, "maximum": 1e9, "default": 1e4}, [1, 1e9]),
        ({"type": "integer", "minimum": 1, "maximum": 65536, "default": 64}, [1, 2, 3, 4, 65536]),
        ({"type": "integer", "minimum": 0, "maximum": 32768, "default": 20}, [0, 1, 2, 3, 32768]),
        ({"type": "integer", "minimum": 1, "maximum": 1024, "multipleOf": 2}, [2, 4, 6, 1024]),
        ({"type": "integer", "minimum": -2047, "maximum": 2047}, [-2047, -1, 0, 1, 2047]),
    ],
)
def test_every_step_of_a_slider_is_another_number(empty: Page, schema: Any, holds: list[float]) -> None:
    found = empty.evaluate(STOPS, schema)
    assert all(low < high for low, high in itertools.pairwise(found))
    assert set(holds) <= set(found)
    least, most = schema.get("minimum", 0), schema["maximum"]
    assert all(least <= one <= most for one in found)
    assert 0 not in found or "exclusiveMinimum" not in schema
    assert 20 < len(found) < 5002
    if schema["type"] == "integer":
        assert all(one % schema.get("multipleOf", 1) == 0 for one in found)


def test_a_wide_range_is_stepped_through_by_multiplying(empty: Page) -> None:
    found = empty.evaluate(STOPS, {"type": "number", "exclusiveMinimum": 0, "maximum": 100, "default": 1})
    assert max(high / low for low, high in itertools.pairwise(found)) < 1.2
    assert found[0] < 0.05


def test_the_keyboard_moves_a_slider_and_reaches_its_ends(learn: Learn) -> None:
    learn.visit("scaling")
    learn.set("spread", rule="own")
    box = learn.page.locator('#spread [data-control="factor"]')
    slider = box.locator("xpath=preceding-sibling::input")
    for key in ("Home", "End", "ArrowLeft", "ArrowLeft"):
        before = box.input_value()
        slider.press(key)
        assert box.input_value() != before
        learn.lab("spread")
        assert learn.problem("spread") == ""
    slider.press("End")
    assert box.input_value() == "100"
    learn.set("spread", factor="99.9")
    slider.press("End")
    assert box.input_value() == "100"


def test_a_shorter_text_keeps_the_layer_and_the_head(learn: Learn) -> None:
    learn.tolerate(re.compile("Failed to load resource"))
    learn.visit("attention", "#look-up?layer=2&head=5&query=10&key=1")
    ran = learn.set("look-up", text="A dog sleeps")
    assert (ran["layer"], ran["head"], ran["query"], ran["key"]) == (2, 5, 0, 1)
    notes = learn.lab("look-up").locator(".notes").inner_text()
    assert "There is no query 10 here any more: query 0 is shown instead." in notes
    assert "layer" not in notes


def test_results_of_earlier_settings_are_marked_until_run(learn: Learn) -> None:
    learn.visit("block")
    learn.set("gradients", depth=4)
    lab = learn.lab("gradients")
    due = lab.locator(".lab-due")
    assert not due.is_visible()
    box = lab.locator('[data-control="depth"]')
    box.fill("6")
    box.blur()
    assert due.inner_text() == "These are of the settings before: press Run."
    section = learn.page.locator("#gradients")
    assert section.get_attribute("data-stale") == "true"
    assert float(lab.locator(".drawing").first.evaluate("node => getComputedStyle(node).opacity")) < 1
    box.fill("4")
    box.blur()
    assert section.get_attribute("data-stale") == "false"
    assert not due.is_visible()
    learn.set("gradients", depth=6)
    assert section.get_attribute("data-stale") == "false"


def test_a_bad_number_is_said_while_a_lab_runs(learn: Learn) -> None:
    learn.visit("block")
    lab = learn.lab("gradients")
    for control, value in (("depth", "128"), ("repeats", "5")):
        box = lab.locator(f'[data-control="{control}"]')
        box.fill(value)
        box.blur()
    lab.locator(".run-lab").click()
    box.fill("lots")
    box.blur()
    assert lab.locator(".lab-problem").inner_text() == "Repeats: write a whole number between 1 and 5."


def test_what_is_known_to_be_refused_is_not_asked_for(learn: Learn) -> None:
    # Nothing is tolerated here: a refusal by the server would stand in the console.
    learn.visit("positions")
    learn.set("waves", d_model=63)
    assert learn.problem("waves") == "d_model: write a multiple of 2 between 1 and 1,024."
    learn.visit("attention")
    learn.set("row", text="")
    assert learn.problem("row") == "Text: write something; it is empty."
    learn.visit("scaling", "#saturation?keys=9999&rule=twice")
    assert learn.problem("saturation") == "Keys: write a whole number between 1 and 512."


def test_the_link_to_the_settings_is_copied(opened: Opener, server: str) -> None:
    learn = opened(server, kind=Learn, permissions=["clipboard-read", "clipboard-write"])
    assert isinstance(learn, Learn)
    learn.visit("scaling")
    learn.set("spread", d_k=16)
    link = learn.lab("spread").locator(".here")
    link.click()
    learn.page.wait_for_function("() => document.querySelector('#spread .here').textContent === 'copied'")
    assert learn.page.evaluate("navigator.clipboard.readText()") == learn.page.url
    assert learn.page.url.endswith("#spread?d_k=16")


@pytest.mark.parametrize("slug", [page.slug for page in TOUR])
def test_on_a_phone_the_current_page_of_the_tour_is_in_view(opened: Opener, server: str, slug: str) -> None:
    learn = opened(server, kind=Learn, **PHONE)
    assert isinstance(learn, Learn)
    learn.visit(slug)
    box = learn.page.locator(".tour-side [aria-current]").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_a_table_too_wide_for_a_phone_scrolls_and_says_so(opened: Opener, server: str) -> None:
    learn = opened(server, kind=Learn, **PHONE)
    assert isinstance(learn, Learn)
    learn.visit("attention")
    learn.lab("row")
    region = learn.page.locator("#row .lab-table .scroll")
    assert region.get_attribute("role") == "region"
    assert region.get_attribute("tabindex") == "0"
    assert "stages" in (region.get_attribute("aria-label") or "")
    found = region.evaluate(
        "node => [node.scrollWidth > node.clientWidth, getComputedStyle(node).backgroundAttachment]"
    )
    assert found == [True, "local, local, scroll, scroll"]
    aligned = region.evaluate("""node => { const of = (cell) => getComputedStyle(cell).textAlign;
      return [...node.querySelectorAll('th')].map((head, i) =>
        [of(head), of(node.querySelectorAll('td')[i])]); }""")
    assert all(head == cell for head, cell in aligned)
    assert ["right", "right"] in aligned


def test_models_that_a_lab_refuses_are_not_offered(learn: Learn) -> None:
    learn.visit("heads")
    select = learn.lab("all-heads").locator('[data-control="model"]')
    learn.page.wait_for_function(
        "() => document.querySelector('#all-heads [data-control=model]').options.length > 1"
    )
    offered = select.locator("option").evaluate_all("nodes => nodes.map((node) => node.value)")
    assert "whisper-tiny.en" not in offered
    assert {"minilm", "smollm2", "rxnmapper"} <= set(offered)
    learn.visit("feed-forward")
    learn.page.wait_for_function(
        "() => document.querySelector('#facts [data-control=model]').options.length > 0"
    )
    found = learn.page.locator('#facts [data-control="model"] option')
    assert found.evaluate_all("nodes => nodes.map((node) => node.value)") == ["smollm2"]


FORMATS = """async ([value, kind]) => (await import('/static/js/learn/answers.js')).formatted(value, kind)"""


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (1.32, "scientific", "1.32"), (0.464, "scientific", "0.464"), (1234.5, None, "1,235"),
        (999999, None, "999,999"),
        (123456.7, None, "123,500"), (1.5e7, "scientific", "15,000,000"),
        (8.8e13, "scientific", "8.80\u00a0·\u00a010¹³"),
        (2.5e7 + 0.5, "scientific", "2.50\u00a0·\u00a010⁷"),
        (1e-6, None, "10⁻⁶"), (5.14e-7, None, "5.14\u00a0·\u00a010⁻⁷"), (0.3102, "percent", "31.02\u202f%"),
        (-0.25, None, "−0.25"), (0, "scientific", "0"), (None, None, "–"),
    ],
)  # fmt: skip
def test_numbers_look_alike_everywhere(empty: Page, value: float, kind: str | None, words: str) -> None:
    assert empty.evaluate(FORMATS, [value, kind]) == words


def test_what_may_not_break_is_kept_together(empty: Page) -> None:
    parts = """async (text) => (await import('/static/js/learn/answers.js')).unbroken(text)
      .filter((part) => typeof part !== 'string').map((part) => part.textContent)"""
    assert empty.evaluate(parts, "scores × 1/√d_k, off by 5.14 · 10⁻⁷ at most") == ["1/√d_k", "5.14 · 10⁻⁷"]
    assert empty.evaluate(parts, "rows below 1e-06") == []
    joined = parts.replace(".filter((part) => typeof part !== 'string').map((part) => part.textContent)",
      ".map((part) => part.textContent ?? part).join('')")  # fmt: skip
    assert empty.evaluate(joined, "rows below 1e-06") == "rows below 10⁻⁶"


SHOWN = """async (facts) => {
  const { fill } = await import('/static/js/learn/answers.js');
  const { el } = await import('/static/js/ui/dom.js');
  const section = el('p', {}, el('span', { 'data-if': 'a.b' }, 'if'),
    el('span', { 'data-unless': 'a.b' }, 'unless'));
  fill(section, { facts: { a: { b: true } } }, true);
  fill(section, { facts }, true);
  return [...section.children].filter((node) => !node.hidden).map((node) => node.textContent);
}"""


@pytest.mark.parametrize("none", [0, "", None, False, []])
def test_sentences_stand_only_where_their_fact_does(empty: Page, none: object) -> None:
    assert empty.evaluate(SHOWN, {"a": {"b": none}}) == ["unless"]
    assert empty.evaluate(SHOWN, {"a": {}}) == ["unless"]
    assert empty.evaluate(SHOWN, {}) == ["unless"]


@pytest.mark.parametrize("some", [1, -0.5, "more", True, [0]])
def test_sentences_stand_where_their_fact_does(empty: Page, some: object) -> None:
    assert empty.evaluate(SHOWN, {"a": {"b": some}}) == ["if"]


TICKS = """async ([values, most]) => (await import('/static/js/figures/ticks.js')).logTicks(values, most)"""


@pytest.mark.parametrize(
    ("values", "most", "texts"),
    [
        ([1, 16384], 13, ["1", "3", "10", "30", "100", "300", "1,000", "3,000", "10,000"]),
        ([0.1, 10], 8, ["0.1", "0.2", "0.5", "1", "2", "5", "10"]),
        ([1e-12, 1], 8, ["10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01", "1"]),
        ([2e-7, 9e-7], 6, ["2 · 10⁻⁷", "3 · 10⁻⁷", "5 · 10⁻⁷"]),
    ],
)
def test_axes_of_powers_are_labelled_in_full(
    empty: Page, values: list[float], most: int, texts: list[str]
) -> None:
    found = empty.evaluate(TICKS, [values, most])
    assert found["ticktext"] == texts
    assert len(found["tickvals"]) <= most


@pytest.mark.parametrize(
    ("values", "step"), [([0, 1, 2], 1), ([0, 1], 1), ([0, 40], 10), ([0, 1, 0.5], None)]
)
def test_axes_of_counts_have_whole_numbers(empty: Page, values: list[float], step: float | None) -> None:
    found = empty.evaluate(
        "async (values) => (await import('/static/js/figures/ticks.js')).wholeTicks(values, 6)", values
    )
    assert (found and found["dtick"]) == step


FIGURE = """async ([names, ys, theme]) => {
  document.documentElement.dataset.theme = theme;
  const { chartFigure } = await import('/static/js/figures/chart.js');
  const { palette } = await import('/static/js/ui/theme.js');
  const axis = { label: 'a', log: false };
  const series = { id: 'm', title: 'A title', kind: 'lines', x: axis, y: axis,
    lines: names.map((name, i) => (
      { name, origin: 'measured', x: [0, 1, 2], y: ys[i] ?? [i, i, i + 1], band: null })) };
  const colours = palette();
  return [chartFigure(series, { palette: colours, width: 1000, height: 600, titled: true }), colours];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_only_query_key_and_value_have_their_colours(empty: Page, theme: str) -> None:
    names = ["key", "RNN", "q", "value", "LSTM", "keys and values kept"]
    figure, colours = empty.evaluate(FIGURE, [names, [], theme])
    drawn = {line["name"]: line["line"]["color"] for line in figure["data"]}
    roles = [colours["query"], colours["key"], colours["value"]]
    assert [drawn["q"], drawn["key"], drawn["value"]] == roles
    assert not {drawn["RNN"], drawn["LSTM"], drawn["keys and values kept"]} & set(roles)
    again, _ = empty.evaluate(FIGURE, [["LSTM", "another", "RNN"], [], theme])
    redrawn = {line["name"]: line["line"]["color"] for line in again["data"]}
    assert (redrawn["RNN"], redrawn["LSTM"]) == (drawn["RNN"], drawn["LSTM"])
    assert len(set(redrawn.values())) == 3


def _linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _luminance(linear: list[float]) -> float:
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# Machado, Oliveira & Fernandes 2009, severity 1: protanopia, deuteranopia.
SEEN = {
    "all": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}  # fmt: skip


def _times(matrix: list[list[float]], vector: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _lab(linear: list[float]) -> list[float]:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = [0.9505, 1, 1.089]
    xyz = [
        sum(a * b for a, b in zip(row, linear, strict=True)) / w for row, w in zip(to_xyz, white, strict=True)
    ]
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (max(0.0, one) for one in xyz))
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_told_apart_by_all_eyes(empty: Page, theme: str) -> None:
    names = [f"line {theme} {i}" for i in range(5)]
    figure, colours = empty.evaluate(FIGURE, [names, [], theme])
    used = [line["line"]["color"] for line in figure["data"]]
    ground = _luminance(_linear(colours["panel"]))
    for colour in used:
        light = _luminance(_linear(colour))
        assert (max(light, ground) + 0.05) / (min(light, ground) + 0.05) >= 3
    for matrix in SEEN.values():
        seen = [_lab(_times(matrix, _linear(one))) for one in used]
        for one, other in itertools.combinations(seen, 2):
            assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 15
    assert len({line["marker"]["symbol"] for line in figure["data"]}) == 5


def test_of_lines_that_coincide_both_are_seen(empty: Page) -> None:
    figure, _ = empty.evaluate(FIGURE, [["one", "same", "other"], [[0, 1, 4], [0, 1, 4], [4, 1, 0]], "light"])
    one, same, other = (line["line"] for line in figure["data"])
    assert one["width"] > same["width"]
    assert (one["dash"], same["dash"], other["dash"]) == ("solid", "dash", "solid")
    assert other["width"] == same["width"]


def test_a_saved_picture_has_room_for_its_title(learn: Learn, tmp_path: Path) -> None:
    learn.visit("scaling")
    learn.lab("saturation")
    learn.page.wait_for_selector("#saturation .chart[data-drawn=plotly]")
    chart = learn.page.locator("#saturation .chart").first
    chart.locator("summary").click()
    with learn.page.expect_download() as download:
        chart.get_by_role("button", name="Picture as SVG").click()
    assert download.value.suggested_filename == "softmax-saturation-entropy.svg"
    boxes = learn.page.evaluate(
        """(svg) => { const holder = document.createElement('div'); document.body.append(holder);
          holder.append(new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement);
          const at = (selector) => [...holder.querySelectorAll(selector)]
            .map((node) => node.getBoundingClientRect());
          const [title] = at('.gtitle');
          return [title.bottom, ...at('.legendtext').map(({ top }) => top)]; }""",
        download.value.path().read_text("utf-8"),
    )
    title, *legend = boxes
    assert len(legend) == 4
    assert title < min(legend)


def test_saved_numbers_name_their_settings(learn: Learn) -> None:
    learn.visit("attention")
    chart = learn.lab("row").locator(".chart").first
    chart.locator("summary").click()
    with learn.page.expect_download() as download:
        chart.get_by_role("button", name="Numbers as JSON").click()
    assert download.value.suggested_filename == "attention-row-scores-minilm-L3H1.json"
    saved = json.loads(download.value.path().read_text("utf-8"))
    assert saved["lab"] == "attention-row"
    assert saved["parameters"]["model"] == "minilm"
    assert saved["lines"]


def test_what_settings_mean_is_there_without_a_mouse(learn: Learn) -> None:
    learn.visit("attention")
    lab = learn.lab("mask")
    lab.locator(".settings > summary").press("Enter")
    told = lab.locator(".settings dl")
    assert told.is_visible()
    assert "`" not in told.inner_text()
    assert told.locator("code").all_inner_texts()
    control = lab.locator('[data-control="mask"]')
    described = control.get_attribute("aria-describedby")
    assert learn.page.evaluate(f"document.getElementById('{described}').textContent.length") > 10


def test_plus_or_minus_is_explained_where_checks_are(learn: Learn) -> None:
    learn.visit("scaling")
    head = learn.lab("spread").locator(".checks-head")
    assert "± how far they may lie apart" in head.inner_text()
    rows = """async () => { const { checkRows } = await import('/static/js/learn/answers.js');
      const check = { name: 'n', relation: '=', expected: 15.9, measured: 15.9, tolerance: 0,
        origin: 'measured', about: null, holds: true };
      return checkRows([check], []).map((row) => row.textContent); }"""
    assert learn.page.evaluate(rows) == ["holdsnmeasured 15.9found by another way = 15.9"]


def test_many_checks_are_folded_and_what_does_not_hold_is_always_seen(learn: Learn) -> None:
    learn.visit("scaling")
    found = learn.page.evaluate("""async () => {
      const { checkRows } = await import('/static/js/learn/answers.js');
      const check = (i) => ({ name: `check ${i}`, relation: '=', expected: 1, measured: 1, tolerance: 0,
        origin: 'theory', about: null, holds: ![3, 9].includes(i) });
      const some = (count) => Array.from({ length: count }, (_, i) => check(i));
      const rows = (count, open) => checkRows(some(count), [], open);
      const seen = (list) => list.map((row) => row.dataset.check ?? row.querySelector('summary').textContent);
      const more = (open) => rows(12, open).at(-1);
      return [seen(rows(5, false)), seen(rows(12, false)), more(true).querySelector('details').open,
        more(false).querySelectorAll('[data-check]').length];
    }""")
    few, many, still_open, folded = found
    assert sorted(few) == [f"check {i}" for i in range(5)]
    assert many == ["check 3", "check 9", "check 0", "check 1", "8 more that hold"]
    assert still_open
    assert folded == 8
