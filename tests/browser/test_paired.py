"""Encoder–decoder models: three groups of sites with their own axes, a target, and both sides of A | B."""

import json
from typing import Any

import numpy as np
import pytest

from tests.browser.atlas import REFUSED, Atlas
from tests.browser.conftest import Opener

pytestmark = pytest.mark.browser

BART, T5, GEMMA = (f"local:paired/{name}" for name in ("bart", "t5", "gemma2"))
SOURCE, TARGET = "the keys", "it did not"
LINK = """async ([model, state]) => {
  const { encode, initial } = await import('/static/js/state.js');
  return '#' + await encode({ ...initial(model), ...state });
}"""


def open_model(
    opened: Opener, server: str, model: str, options: dict[str, Any] | None = None, **state: Any
) -> Atlas:
    """The page as a link to a model and a state opens it."""
    atlas = opened(server, **(options or {}))
    atlas.page.goto(f"{server}docs")
    fragment = atlas.page.evaluate(LINK, [model, {"text": SOURCE} | state])
    return atlas.open(fragment)


@pytest.fixture
def bart(opened: Opener, paired_server: str) -> Atlas:
    """A tiny BART with a typed target, seen at its cross-attention."""
    return open_model(opened, paired_server, BART, target=TARGET)


def choose(atlas: Atlas, group: str) -> Atlas:
    atlas.find("group").get_by_text(group, exact=True).click()
    return atlas.settled()


def title(atlas: Atlas, column: str = "a") -> str:
    text = atlas.page.locator(f"[data-column={column}] .picture-title").inner_text()
    return text.split(" · ")[0]


def posted(atlas: Atlas, path: str = "/api/traces") -> list[dict[str, Any]]:
    return [json.loads(request.post_data or "{}") for request in atlas.asked if request.url.endswith(path)]


def words(tokens: list[dict[str, Any]]) -> str:
    return "".join(token["text"] for token in tokens if not token["special"]).replace(" ", "")


@pytest.mark.parametrize(
    ("group", "prefix", "heads", "query", "key"),
    [
        ("Encoder", "enc ", 15, SOURCE, SOURCE),
        ("Decoder", "dec ", 12, TARGET, TARGET),
        ("Cross", "cross ", 12, TARGET, SOURCE),
    ],
)
def test_each_group_has_its_own_heads_and_axes(
    bart: Atlas, group: str, prefix: str, heads: int, query: str, key: str
) -> None:
    choose(bart, group)
    assert bart.state == "ready"
    assert title(bart).startswith(prefix)
    assert title(bart) in bart.sentence
    assert bart.find("overview").locator("button").count() == heads
    assert bart.find("links").locator("button").first.inner_text().startswith(prefix)
    strips = [strip for strip in bart.find("tokens").locator(".strip-tokens").all() if strip.is_visible()]
    shown = ["".join(strip.locator("button").all_inner_texts()).replace("␣", "") for strip in strips]
    # the decoder's start is one more token, which this tokenizer has a letter for
    assert [text.removeprefix("#") for text in shown] == [
        text.replace(" ", "") for text in ([query] if query == key else [query, key])
    ]


def test_the_cells_of_cross_attention_are_those_of_the_api(bart: Atlas) -> None:
    trace = bart.trace(BART)
    name, (layer, head) = title(bart).split()[0], title(bart).split()[1][1:].split("H")
    assert name == "cross"
    weights = bart.tensor(f"{trace['id']}/attention/decoder.cross.{layer}/{head}")
    assert weights.shape == (len(trace["tokens"]), len(trace["source_tokens"]))
    row = bart.find("tokens").locator("button[aria-pressed=true]").first.get_attribute("data-index")
    most = float(np.max(weights[int(row or 0)]))
    assert f" {most:.2f} in {title(bart)}" in bart.sentence
    box = bart.find("cells").bounding_box()
    assert box is not None
    bart.page.mouse.move(
        box["x"] + box["width"] * 0.5 / weights.shape[1], box["y"] + box["height"] * 0.5 / weights.shape[0]
    )
    assert bart.find("tooltip").inner_text().endswith(f"{weights[0, 0]:.3f}")


def test_the_source_strip_picks_the_key_and_the_target_strip_the_query(bart: Atlas) -> None:
    target, source = bart.find("tokens").locator(".strip-tokens").all()
    target.locator("button").nth(1).click()
    bart.settled()
    source.locator("button").nth(0).click()
    bart.settled()
    tokens = bart.trace(BART)
    told = bart.find("pair").locator("h2 bdi").all_inner_texts()
    assert [word.strip() for word in told] == [
        tokens["tokens"][1]["text"].strip(),
        tokens["source_tokens"][0]["text"].strip(),
    ]


def test_groups_can_be_chosen_with_arrow_keys(bart: Atlas, opened: Opener) -> None:
    bart.find("group").locator("input:checked").focus()
    bart.page.keyboard.press("ArrowLeft")
    bart.settled()
    assert title(bart).startswith("dec ")
    bart.page.keyboard.press("ArrowLeft")
    bart.settled()
    assert title(bart).startswith("enc ")
    other = opened(bart.server)
    other.page.goto(bart.page.url)
    other.settled()
    assert (other.view, other.sentence) == (bart.view, bart.sentence)
    assert other.find("target").input_value() == TARGET
    bart.page.go_back()
    bart.page.wait_for_function(
        "() => document.querySelector('.picture-title').textContent.startsWith('dec ')"
    )


def test_an_empty_target_is_written_by_the_model_and_said(bart: Atlas) -> None:
    assert bart.find("written").is_hidden()
    bart.find("target").fill("")
    bart.find("target").press("Enter")
    bart.settled()
    trace = bart.trace(BART)
    assert trace["written"] is True
    told = bart.find("written").inner_text()
    assert "target" in told
    assert words(trace["tokens"]) in told.replace(" ", "")


def test_a_mask_acts_on_the_group_that_is_shown(bart: Atlas) -> None:
    assert bart.find("mask").is_hidden()
    choose(bart, "Encoder").mask("causal")
    step = {"kind": "set_mask", "rule": {"name": "causal"}, "sites": "encoder.self.*"}
    assert posted(bart)[-1]["plan"] == [step]
    masks = {site["site"]: site["mask"] for site in bart.trace(BART)["sites"]}
    assert (masks["encoder.self.0"], masks["decoder.cross.0"]) == ("causal", "bidirectional")
    choose(bart, "Decoder")
    assert bart.find("mask").locator("input:checked").input_value() == "own"
    bart.mask("bidirectional")
    assert posted(bart)[-1]["plan"][0] == step
    assert posted(bart)[-1]["plan"][1]["sites"] == "decoder.self.*"


def test_b_reads_the_target_that_a_wrote(opened: Opener, paired_server: str) -> None:
    atlas = open_model(opened, paired_server, BART)
    atlas.find("view").get_by_text("A | B").click()
    atlas.settled()
    assert atlas.state == "ready"
    written = [token["id"] for token in atlas.trace(BART)["tokens"]]
    assert posted(atlas)[-1]["target_ids"] == written
    sides = posted(atlas, "/api/compare")[-1]
    assert sides["a"]["target_ids"] == sides["b"]["target_ids"] == written
    assert sides["a"]["plan"] != sides["b"]["plan"]
    assert "which B reads too" in atlas.find("written").inner_text()
    assert "in the encoder" in atlas.sentence
    assert atlas.find("changes").locator("[data-testid^=change-]").count() == 12
    choose(atlas, "Encoder")
    assert atlas.find("changes").locator("[data-testid^=change-]").count() == 15
    assert title(atlas) == title(atlas, "b")
    assert atlas.find("changes").locator(".changed button").first.inner_text().startswith("enc ")


def test_models_of_two_kinds_are_not_compared(opened: Opener, paired_server: str) -> None:
    atlas = open_model(opened, paired_server, BART)
    atlas.find("view").get_by_text("A | B").click()
    atlas.settled()
    atlas.find("model-b").select_option(GEMMA)
    atlas.settled()
    assert "cannot be compared" in atlas.find("problem").inner_text()


@pytest.mark.parametrize(("model", "step"), [(T5, "bias"), (GEMMA, "capped")])
def test_bias_and_softcap_have_their_rows(opened: Opener, paired_server: str, model: str, step: str) -> None:
    atlas = open_model(opened, paired_server, model)
    if model == T5:
        choose(atlas, "Encoder")
    table = atlas.find("arithmetic")
    assert table.get_attribute("data-adds") == "true"
    shown = float(table.locator(f"td[data-step={step}]").inner_text())
    assert shown != 0
    label = table.locator(f".step-{step} th").inner_text()
    assert label.startswith("12 × tanh" if model == GEMMA else "+ a trained bias")
    assert table.locator("td[data-step=capped]").count() == (model == GEMMA)


@pytest.mark.parametrize("tab", ["matrix", "lines", "text"])
@pytest.mark.parametrize("group", ["Encoder", "Cross"])
def test_nothing_is_wider_than_a_phone(opened: Opener, paired_server: str, group: str, tab: str) -> None:
    phone = {"viewport": {"width": 390, "height": 800}}
    atlas = choose(open_model(opened, paired_server, BART, phone), group)
    atlas.page.locator(f"[data-column=a] [data-tab={tab}]").click()
    atlas.settled()
    assert atlas.state == "ready"
    assert atlas.overflow() <= 0


def test_a_link_to_a_group_that_is_not_there_is_said(opened: Opener, paired_server: str) -> None:
    pick = {"stack": "encoder.self", "layer": 0, "head": 0, "query": 0, "key": 0, "auto": False}
    atlas = open_model(opened, paired_server, GEMMA, pick=pick)
    assert "no attention called encoder.self" in atlas.find("problem").inner_text()
    assert atlas.state == "ready"


def test_a_target_that_is_too_long_is_refused_in_words(bart: Atlas) -> None:
    bart.tolerate(REFUSED)
    bart.find("target").fill("keys " * 60)
    bart.find("target").press("Enter")
    bart.settled()
    assert bart.state == "error"
    assert "has positions for 66" in bart.find("problem").inner_text()
