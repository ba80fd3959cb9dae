"""A mask swap recomputes the network."""

import numpy as np
import pytest

from tests.browser.atlas import Atlas

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def test_a_causal_mask_empties_the_upper_triangle_and_changes_the_output(atlas: Atlas) -> None:
    before = atlas.trace()
    atlas.mask("causal")
    after = atlas.trace()
    weights = atlas.tensor(f"{after['id']}/attention/encoder.self.5/3")
    assert np.count_nonzero(np.triu(weights, 1)) == 0
    assert not np.allclose(before["readout"]["similarity"], after["readout"]["similarity"], atol=1e-3)
    assert atlas.picked() == ("L3H1", "it", "animal")
    assert "0.57" in atlas.sentence


def test_masked_cells_are_told_as_masked(atlas: Atlas) -> None:
    atlas.mask("causal")
    box = atlas.find("cells").bounding_box()
    assert box is not None
    atlas.page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 5)
    assert atlas.find("tooltip").inner_text() == "[CLS] → [SEP]: masked"


def test_a_window_has_its_two_numbers(atlas: Atlas) -> None:
    atlas.mask("window")
    atlas.find("mask-left").fill("2")
    atlas.find("mask-left").press("Enter")
    atlas.settled()
    trace = atlas.trace()
    assert trace["sites"][0]["mask"] == "window 2 back, 0 ahead"
    open_ = atlas.tensor(f"{trace['id']}/attention/encoder.self.0/0?stage=mask")
    assert open_.sum() == 3 * 16 - 3


def test_a_decoder_can_be_opened_to_both_sides(atlas: Atlas) -> None:
    atlas.find("model").select_option("smollm2")
    atlas.settled()
    assert atlas.find("overview").locator("button").count() == 270
    atlas.mask("bidirectional")
    weights = atlas.tensor(f"{atlas.trace('smollm2')['id']}/attention/decoder.self.0/0")
    assert (np.triu(weights, 1).sum(axis=1)[:-1] > 0).all()


def test_without_scaling_the_scores_are_the_products(atlas: Atlas) -> None:
    atlas.find("scale").select_option("none")
    atlas.settled()
    cells = atlas.find("arithmetic")
    dot, scaled = (float(cells.locator(f"td[data-step={step}]").inner_text()) for step in ("dot", "scaled"))
    assert dot == pytest.approx(scaled, abs=1e-3)
