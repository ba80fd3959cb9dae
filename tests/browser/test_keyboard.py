"""Everything without a pointer."""

import pytest

from tests.browser.atlas import Atlas

pytestmark = [pytest.mark.browser, pytest.mark.weights]

FOCUSED = """() => {
  const { dataset, textContent } = document.activeElement;
  return dataset.tab ?? dataset.testid ?? textContent;
}"""
NAMELESS = """() => {
  const named = (node) => node.getAttribute('aria-label') || node.labels?.length || node.textContent.trim();
  return [...document.querySelectorAll('button, input, select, textarea, [role=application]')]
    .filter((node) => node.offsetParent && !named(node)).map((node) => node.outerHTML.slice(0, 120));
}"""
MOST_TABS = 60


def tab_to(atlas: Atlas, name: str) -> None:
    for _ in range(MOST_TABS):
        atlas.page.keyboard.press("Tab")
        if atlas.page.evaluate(FOCUSED) == name:
            return
    pytest.fail(f"{name} cannot be reached with the Tab key")


def test_a_walk_with_the_keyboard_alone(atlas: Atlas) -> None:
    keyboard = atlas.page.keyboard
    tab_to(atlas, "text")
    keyboard.press("Control+A")
    keyboard.type("The trophy did not fit in the suitcase because it was too big.")
    keyboard.press("Enter")
    atlas.settled()
    assert "[CLS]" in atlas.find("tokens").inner_text()
    head = atlas.picked()[0]
    layer, number = head[1:].split("H")
    tab_to(atlas, f"head-{layer}-{number}")
    keyboard.press("ArrowUp")
    atlas.settled()
    assert atlas.picked()[0] == f"L{int(layer) - 1}H{number}"
    tab_to(atlas, "matrix")
    keyboard.press("ArrowRight")
    atlas.settled()
    assert atlas.find("lines").is_visible()
    keyboard.press("ArrowLeft")
    atlas.settled()
    query = atlas.picked()[1]
    tab_to(atlas, "cells")
    keyboard.press("ArrowDown")
    atlas.settled()
    assert atlas.picked()[1] != query


def test_a_mask_can_be_chosen_with_arrow_keys(atlas: Atlas) -> None:
    atlas.find("mask").locator("input:checked").focus()
    atlas.page.keyboard.press("ArrowRight")
    atlas.settled()
    assert atlas.trace()["plan_words"] == "causal mask"


def test_every_control_has_a_name(atlas: Atlas) -> None:
    atlas.preset("minilm: own against causal")
    assert atlas.page.evaluate(NAMELESS) == []
