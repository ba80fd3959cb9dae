"""Run, hover, choose a head, pick a pair."""

import json
import math
import urllib.request

import pytest

from tests.browser.atlas import Atlas

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def hover_cell(atlas: Atlas, query: int, key: int, count: int) -> None:
    box = atlas.find("cells").bounding_box()
    assert box is not None
    x = box["x"] + (key + 0.5) * box["width"] / count
    y = box["y"] + (query + 0.5) * box["height"] / count
    atlas.page.mouse.move(x, y)


def test_a_pasted_text_with_line_breaks_runs(atlas: Atlas) -> None:
    atlas.run("The keys to the cabinet\nare on the table.")
    assert atlas.state == "ready"
    words = atlas.find("tokens").locator("button").all_inner_texts()
    assert " ".join(words) == "[CLS] the keys to the cabinet are on the table . [SEP]"
    assert atlas.find("tokens").locator("br").count() == 1


def test_hovering_tells_the_weight_that_the_api_gives(atlas: Atlas) -> None:
    trace = atlas.trace()
    weights = atlas.tensor(f"{trace['id']}/attention/encoder.self.3/1")
    atlas.page.mouse.move(0, 0)
    for query, key in ((10, 2), (6, 8), (0, 5)):
        hover_cell(atlas, query, key, len(trace["tokens"]))
        words = [trace["tokens"][i]["text"] for i in (query, key)]
        weight = float(weights[query, key])
        shown = f"{weight:.3f}" if weight >= 0.0005 else None
        text = atlas.find("tooltip").inner_text()
        assert text.startswith(f"{words[0]} → {words[1]}: ")
        if shown:
            assert text.endswith(shown)
        else:
            assert math.isclose(float(text.rsplit(" ", 1)[1]), weight, rel_tol=0.06)


def test_arrow_keys_choose_a_head(atlas: Atlas) -> None:
    atlas.find("head-3-1").focus()
    atlas.page.keyboard.press("ArrowDown")
    atlas.settled()
    assert atlas.picked()[0] == "L4H1"
    atlas.page.keyboard.press("ArrowRight")
    atlas.settled()
    assert atlas.picked()[0] == "L4H2"
    assert atlas.find("head-4-2").get_attribute("aria-selected") == "true"
    assert "L4H2" in atlas.sentence


def test_the_figures_of_the_head_under_the_pointer_are_told(atlas: Atlas) -> None:
    trace = atlas.trace()
    atlas.page.locator("[data-testid=overview][data-figures=ready]").wait_for()
    with urllib.request.urlopen(f"{atlas.server}api/traces/{trace['id']}/heads") as answer:
        figures = json.load(answer)["sites"][0]["heads"][2]
    atlas.find("head-0-2").hover()
    told = atlas.find("figures").inner_text()
    assert "L0H2" in told
    assert f"entropy {figures['entropy']:.2f}" in told
    assert f"previous {figures['previous']:.2f}" in told


def test_arrow_keys_move_the_picked_pair(atlas: Atlas) -> None:
    atlas.find("cells").focus()
    atlas.page.keyboard.press("ArrowUp")
    atlas.settled()
    atlas.page.keyboard.press("ArrowLeft")
    atlas.settled()
    assert atlas.picked() == ("L3H1", "because", "the")


def test_clicking_tokens_picks_query_and_key(atlas: Atlas) -> None:
    tokens = atlas.find("tokens").locator("button")
    tokens.nth(6).click()
    atlas.settled()
    tokens.nth(8).click(modifiers=["Shift"])
    atlas.settled()
    assert atlas.picked() == ("L3H1", "cross", "street")


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_the_arithmetic_on_screen_adds_up(atlas: Atlas, model: str) -> None:
    if model != "minilm":
        atlas.find("model").select_option(model)
        atlas.settled()
    cells = atlas.find("arithmetic").locator("td")
    shown = {cell.get_attribute("data-step"): cell.inner_text() for cell in cells.all()}
    scale = float(atlas.find("arithmetic").locator(".step-scaled th").inner_text().split("=")[1])

    def told(step: str) -> tuple[float, float]:
        decimals = len(shown[step].partition(".")[2])
        return float(shown[step]), 0.500001 * 10**-decimals

    value, step = told("scaled")
    assert float(shown["dot"]) * scale == pytest.approx(value, abs=step)
    value, step = told("score")
    assert float(shown["scaled"]) + float(shown["bias"]) == pytest.approx(value, abs=step)
    value, step = told("exp")
    assert math.exp(float(shown["score"]) - float(shown["max"])) == pytest.approx(value, abs=step)
    value, step = told("weight")
    assert float(shown["exp"]) / float(shown["sum"]) == pytest.approx(value, abs=step)
    assert shown["mask"] == "open"
    assert atlas.find("arithmetic").get_attribute("data-adds") == "true"


def test_lines_and_text_show_the_same_pick(atlas: Atlas) -> None:
    atlas.page.locator("[data-column=a] [data-tab=lines]").click()
    atlas.settled()
    lines = atlas.find("lines")
    assert lines.locator("text.query.picked").text_content() == "it"
    assert lines.locator("text.key.picked").text_content() == "animal"
    assert lines.locator("line.pair").count() == 1
    atlas.page.locator("[data-column=a] [data-tab=text]").click()
    atlas.settled()
    assert atlas.find("reading").locator(".is-query").inner_text() == "it"


def test_a_head_that_links_the_pair_can_be_chosen_from_the_list(atlas: Atlas) -> None:
    first = atlas.find("links").locator("button").first
    assert first.inner_text().split() == ["L3H1", "0.677"]
    atlas.find("links").locator("button").nth(1).click()
    atlas.settled()
    assert atlas.picked() == ("L5H11", "it", "animal")


def test_a_long_text_can_be_zoomed_to_exact_cells(atlas: Atlas) -> None:
    atlas.run("The quick brown fox jumps over the lazy dog because it was not very tired. " * 28)
    caption = atlas.page.locator("[data-column=a] .picture-caption")
    assert "pooled" in caption.inner_text()
    assert float(atlas.find("arithmetic").locator("td[data-step=weight]").inner_text()) > 0.1
    atlas.page.get_by_role("button", name="zoom to the pick").click()
    atlas.settled()
    assert "pooled" not in caption.inner_text()
    assert "of 450" in atlas.find("zoom").inner_text()
    assert atlas.find("matrix").locator("text.query.picked").count() == 1
