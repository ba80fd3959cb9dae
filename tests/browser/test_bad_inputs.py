"""Texts that broke other tools: a sentence says what is wrong, or the tokens appear; the text is kept."""

import re

import pytest

from tests.browser.atlas import REFUSED, Atlas
from tests.browser.conftest import Opener

pytestmark = [pytest.mark.browser, pytest.mark.weights]

SHOWN = {
    "markup": "</script><img src=x onerror=alert(1)>",
    "template": "{{7*7}}",
    "hebrew": "המחיר הוא 25 שקל",
    "arabic": "السعر 25 دولارا",
    "emoji": "💩💩💩 👩‍👩‍👧‍👦",
    "chinese": "我说你倒是快点啊",
    "amharic": "ሰላም ለሁሉም",
    "diacritics": "Karadžić naïve é",
    "arrow": "i ⭢ j …",
    "control": "a\u0010b\tc",
    "long word": "Donaudampfschifffahrtsgesellschaftskapitänsmütze" * 4,
    "formula": "=SUM(A1) +1 -2 @x",
    "one token": "a",
}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark"}


def assert_shown(atlas: Atlas, text: str) -> None:
    assert atlas.state == "ready", atlas.find("problem").inner_text()
    assert atlas.find("text").input_value() == text
    tokens = [token["text"] for token in atlas.trace()["tokens"]]
    assert atlas.find("tokens").locator("button").count() == len(tokens)
    labels = " ".join(atlas.find("matrix").locator("text").all_text_contents())
    assert not re.search("Ġ|▁|##", labels)
    assert atlas.page.locator("img").count() == 0
    assert "49" not in atlas.find("tokens").inner_text()


def test_each_text_is_shown_as_text_on_a_desktop(atlas: Atlas) -> None:
    for text in SHOWN.values():
        atlas.run(text)
        assert_shown(atlas, text)
        assert atlas.overflow() <= 0


def test_each_text_fits_a_phone(opened: Opener, server: str) -> None:
    atlas = opened(server, **PHONE).open()
    for name, text in SHOWN.items():
        atlas.run(text)
        assert_shown(atlas, text)
        assert atlas.overflow() <= 0, name
    atlas.preset("Encoder beside decoder")
    assert atlas.overflow() <= 0


def test_right_to_left_tokens_stand_in_their_order(atlas: Atlas) -> None:
    atlas.run(SHOWN["hebrew"])
    buttons = atlas.find("tokens").locator("button")
    places = [box["x"] for box in (button.bounding_box() for button in buttons.all()) if box]
    assert places == sorted(places, reverse=True)
    atlas.page.locator("[data-column=a] [data-tab=lines]").click()
    atlas.settled()
    # a line's end meets its token's height
    line, token = atlas.find("lines").locator("line.pair"), atlas.find("lines").locator("text.query.picked")
    assert float(line.get_attribute("y1") or 0) == pytest.approx(float(token.get_attribute("y") or 0) - 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), (" " * 100, ""), ("\n\n\t", ""), ("word " * 700, "512")],
    ids=["nothing", "spaces", "blank lines", "too long"],
)
def test_what_cannot_run_is_said_and_kept(atlas: Atlas, text: str, words: str) -> None:
    atlas.tolerate(REFUSED)
    before = atlas.find("tokens").inner_text()
    atlas.run(text)
    assert atlas.state == "error"
    assert words in atlas.find("problem").inner_text()
    assert atlas.find("problem").inner_text().strip()
    assert atlas.find("text").input_value() == text
    assert atlas.find("tokens").inner_text() == before
    assert "Still shown below" in atlas.sentence


def test_what_was_said_of_one_run_does_not_stay_for_the_next(atlas: Atlas) -> None:
    atlas.tolerate(REFUSED)
    atlas.run(SHOWN["amharic"])
    assert "unknown" in atlas.find("notices").inner_text()
    atlas.run("")
    assert atlas.state == "error"
    assert atlas.find("notices").inner_text() == ""


def test_a_lone_surrogate_is_said_and_kept(atlas: Atlas) -> None:
    atlas.tolerate(REFUSED)
    atlas.page.evaluate("document.querySelector('[data-testid=text]').value = 'a \\ud800 b'")
    atlas.find("run").click()
    atlas.settled()
    assert atlas.state == "error"
    assert "surrogate" in atlas.find("problem").inner_text()
    assert atlas.page.evaluate("document.querySelector('[data-testid=text]').value") == "a \ud800 b"


def test_a_text_that_is_too_long_can_be_cut_by_choice(atlas: Atlas) -> None:
    atlas.tolerate(REFUSED)
    atlas.run("💩 word " * 400)
    atlas.find("problem").get_by_role("button", name="Keep the first 512 tokens").click()
    atlas.settled()
    assert atlas.state == "ready"
    assert 500 <= len(atlas.trace()["tokens"]) <= 512
    assert atlas.find("problem").is_hidden()


def test_two_pages_do_not_disturb_each_other(opened: Opener, server: str) -> None:
    one, two = opened(server).open(), opened(server).open()
    two.find("model").select_option("smollm2")
    two.settled()
    one.mask("causal")
    assert "270 heads" in two.sentence
    assert "72 heads" in one.sentence
