"""What a person sees on opening the page."""

import pytest

from tests.browser.atlas import Atlas
from tests.browser.conftest import Opener

pytestmark = [pytest.mark.browser, pytest.mark.weights]

INK = """canvas => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(data.buffer)).size;
}"""


def test_a_sentence_is_run_and_said_in_words(atlas: Atlas) -> None:
    assert atlas.state == "ready"
    assert "looks most at" in atlas.sentence
    assert "16 tokens, 72 heads" in atlas.sentence


def test_the_page_chooses_a_telling_link_by_itself(atlas: Atlas) -> None:
    assert atlas.picked() == ("L3H1", "it", "animal")


def test_every_head_is_in_the_picture(atlas: Atlas) -> None:
    assert atlas.find("overview").locator("button").count() == 72
    assert atlas.find("overview").locator("canvas").evaluate(INK) > 100
    size = atlas.find("head-0-0").bounding_box()
    assert size is not None
    assert min(size["width"], size["height"]) >= 24


def test_the_matrix_is_drawn_by_plotly_with_tokens_on_both_axes(atlas: Atlas) -> None:
    assert atlas.find("matrix").get_attribute("data-drawn") == "plotly"
    assert atlas.find("matrix").locator(".main-svg image").count() == 1
    tokens = [token["text"] for token in atlas.trace()["tokens"]]
    for axis in ("query", "key"):
        assert atlas.find("matrix").locator(f"text.{axis}").all_text_contents() == tokens


def test_the_scale_has_numbers_and_the_header_says_where_it_ran(atlas: Atlas) -> None:
    assert atlas.page.locator(".legend .ticks").first.all_inner_texts()
    assert "cpu" in atlas.find("device").inner_text()
    assert "float32" in atlas.find("device").inner_text()


def test_the_theme_is_remembered(opened: Opener, server: str) -> None:
    atlas = opened(server, color_scheme="light").open()
    html = atlas.page.locator("html")
    assert html.get_attribute("data-theme") == "light"
    atlas.find("theme").click()
    assert html.get_attribute("data-theme") == "dark"
    atlas.page.reload()
    atlas.settled()
    assert html.get_attribute("data-theme") == "dark"
