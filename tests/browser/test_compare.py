"""A | B: the same text under two models or two masks."""

import re

import pytest

from tests.browser.atlas import Atlas

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def test_the_same_weights_under_two_masks(atlas: Atlas) -> None:
    atlas.preset("minilm: own against causal")
    assert re.search(r"on average \d+ % of each row’s attention moved", atlas.sentence)
    assert "cosine of 0.88" in atlas.sentence
    assert atlas.sentence.endswith("it → animal goes from 0.68 to 0.57.")
    assert atlas.find("changes").locator("[data-testid^=change-]").count() == 72
    assert "bidirectional" in (atlas.find("mask-picture").get_attribute("aria-label") or "")
    assert "causal" in (atlas.find("mask-picture-b").get_attribute("aria-label") or "")


def test_choosing_a_head_in_either_column_moves_both(atlas: Atlas) -> None:
    atlas.preset("minilm: own against causal")
    atlas.find("head-b-2-4").click()
    atlas.settled()
    titles = atlas.page.locator(".picture-title").all_inner_texts()
    assert [title.split()[0] for title in titles] == ["L2H4", "L2H4"]


def test_a_most_changed_head_can_be_chosen(atlas: Atlas) -> None:
    atlas.preset("minilm: own against causal")
    row = atlas.find("changes").locator(".changed button").first
    name, tv = row.inner_text().split()
    assert float(tv) > 0.5
    row.click()
    atlas.settled()
    assert atlas.picked()[0] == name


def test_an_encoder_beside_a_decoder(atlas: Atlas) -> None:
    atlas.preset("Encoder beside decoder")
    assert "word by word, their mean attention maps differ by" in atlas.sentence
    assert atlas.find("overview").locator("button").count() == 72
    assert atlas.find("overview-b").locator("button").count() == 270
    closest = atlas.find("changes").locator("button[aria-pressed=true]").inner_text()
    a, b = (name.split()[0] for name in atlas.page.locator(".picture-title").all_inner_texts())
    assert closest.split()[:3] == [a, "~", b]
    words = atlas.find("pair-b").locator("h2 bdi").all_inner_texts()
    assert words == ["it", "animal"]


def test_a_token_without_a_counterpart_is_said_so(atlas: Atlas) -> None:
    atlas.preset("Encoder beside decoder")
    atlas.find("tokens").locator("button").first.click()
    atlas.settled()
    assert atlas.state == "ready"
    assert "has no token" in atlas.find("pair-b").inner_text()


def test_both_columns_keep_their_own_model_and_mask(atlas: Atlas) -> None:
    atlas.find("view").get_by_text("A | B").click()
    atlas.settled()
    atlas.find("model-b").select_option("smollm2")
    atlas.settled()
    atlas.mask("bidirectional", "-b")
    assert atlas.find("model").input_value() == "minilm"
    assert atlas.trace("smollm2")["plan_words"] == "bidirectional mask"
    assert atlas.trace("minilm")["plan_words"] == "the model's own"
    atlas.find("view").get_by_text("one").click()
    atlas.settled()
    assert atlas.find("matrix-b").is_hidden()
    assert "looks most at" in atlas.sentence
