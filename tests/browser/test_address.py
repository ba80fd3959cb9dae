"""The whole state is in the address."""

import pytest

from tests.browser.atlas import REFUSED, Atlas
from tests.browser.conftest import Opener

pytestmark = [pytest.mark.browser, pytest.mark.weights]

CHANGED = """async (change) => {
  const { decode, encode } = await import('/static/js/state.js');
  const state = await decode(location.hash.slice(1));
  return '#' + await encode({ ...state, ...change, pick: { ...state.pick, ...(change.pick ?? {}) } });
}"""


def test_another_page_shows_the_same(atlas: Atlas, opened: Opener) -> None:
    atlas.run("The trophy did not fit in the suitcase because it was too big.").mask("causal")
    atlas.find("head-2-3").click()
    atlas.settled()
    atlas.page.locator("[data-column=a] [data-tab=lines]").click()
    atlas.settled()
    other = opened(atlas.server)
    other.page.goto(atlas.page.url)
    other.settled()
    assert other.view == atlas.view
    assert other.sentence == atlas.sentence
    assert other.find("text").input_value() == atlas.find("text").input_value()
    assert other.find("lines").is_visible()


def test_a_comparison_comes_back_too(atlas: Atlas, opened: Opener) -> None:
    atlas.preset("Encoder beside decoder")
    other = opened(atlas.server)
    other.page.goto(atlas.page.url)
    other.settled()
    assert other.view == atlas.view
    assert other.sentence == atlas.sentence


def test_back_and_forward(atlas: Atlas) -> None:
    first = atlas.view
    atlas.find("head-1-8").click()
    atlas.settled()
    second = atlas.view
    atlas.run("A new text.")
    html = atlas.page.locator("html")
    assert len({first, second, atlas.view}) == 3
    atlas.page.go_back()
    html.and_(atlas.page.locator(f"[data-view='{second}']")).wait_for(state="attached")
    atlas.page.go_back()
    html.and_(atlas.page.locator(f"[data-view='{first}']")).wait_for(state="attached")
    assert "street" in atlas.find("text").input_value()
    atlas.page.go_forward()
    html.and_(atlas.page.locator(f"[data-view='{second}']")).wait_for(state="attached")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pick": {"layer": 9}}, "There is no L9H1: MiniLM-L6 has layers 0 to 5 and heads 0 to 11."),
        ({"pick": {"head": 12}}, "There is no L3H12"),
        ({"pick": {"key": 400}}, "There is no token 400: the text has 16"),
    ],
)
def test_what_the_model_lacks_is_said_and_the_text_kept(
    atlas: Atlas, opened: Opener, change: dict[str, object], words: str
) -> None:
    fragment = atlas.page.evaluate(CHANGED, change)
    other = opened(atlas.server).open(fragment)
    assert other.state == "ready"
    assert words in other.find("problem").inner_text()
    assert other.find("text").input_value() == atlas.find("text").input_value()


def test_an_unknown_model_is_said_and_the_text_kept(atlas: Atlas, opened: Opener) -> None:
    fragment = atlas.page.evaluate(
        CHANGED, {"a": {"model": "nonesuch", "mask": {"name": "own"}, "scale": "own"}}
    )
    other = opened(atlas.server)
    other.tolerate(REFUSED)
    other.open(fragment)
    assert "nonesuch" in other.find("problem").inner_text()
    assert other.find("text").input_value() == atlas.find("text").input_value()


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("#1.AAAA", "damaged"),
        ("#1.q1ZKzk9J", "damaged"),
        ("#7.q1ZKzk9J", "another version"),
        ("#hello", "another version"),
    ],
)
def test_a_damaged_link_is_said_and_the_page_works(
    opened: Opener, server: str, fragment: str, words: str
) -> None:
    page = opened(server).open(fragment)
    assert page.state == "ready"
    assert words in page.find("problem").inner_text()
    assert "looks most at" in page.sentence
