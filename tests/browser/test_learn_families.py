"""The page on families, tried as a person would: each choice moves its numbers to the right values."""

import json
import re

import pytest

from model.recordings import recordings
from tests.browser.atlas import REFUSED
from tests.browser.learn import Learn

pytestmark = [pytest.mark.browser, pytest.mark.weights]

OWN = {"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 8, "n_positions": 16, "vocab_size": 100}


def number(text: str) -> float:
    """What a page prints as a number."""
    return float(text.replace(",", "").removesuffix(" %"))


def test_the_three_kinds_are_drawn_from_the_chosen_configurations(learn: Learn) -> None:
    learn.visit("families")
    drawing = learn.page.locator("#kinds .archetypes")
    drawing.locator("svg").nth(2).wait_for()
    cross = "with cross-attention to the encoder"
    names = [svg.get_attribute("aria-label") for svg in drawing.locator("svg").all()]
    assert names == [
        "BERT base (uncased): encoder of 12 layers, bidirectional",
        "GPT-2 small: decoder of 12 layers, causal",
        f"T5 small: encoder of 6 layers, bidirectional; decoder of 6 layers, causal, {cross}",
    ]
    # Small masks of five tokens: the upper triangle is closed in a decoder's, nothing in an encoder's.
    assert [svg.locator(".closed").count() for svg in drawing.locator("svg").all()] == [0, 10, 10]
    learn.set("kinds", decoder_only="gpt3", encoder_decoder="whisper-tiny")
    assert drawing.get_by_text("decoder × 96").is_visible()
    assert drawing.get_by_text("two convolutions").is_visible()


def test_the_causal_mask_forbids_the_upper_triangle(learn: Learn) -> None:
    learn.visit("families")
    learn.set("masks", tokens=6, source=4)
    assert [learn.fact("masks", f"{name}_pairs") for name in ("all", "open", "forbidden", "cross")] == [
        "36",
        "21",
        "15",
        "24",
    ]
    assert learn.check("masks", "decoder: open pairs of query and key")["measured"] == 21
    assert learn.check("masks", "largest weight on a later token")["measured"] == 0
    assert learn.charts("masks") == ["mask-encoder", "mask-decoder", "mask-cross", "scores"]


def test_what_reaches_what_is_measured(learn: Learn) -> None:
    learn.visit("families")
    learn.set("reach", tokens=9, source=5, decoder_only="mistral-7b", encoder_decoder="whisper-base")
    found = {
        name: learn.check("reach", f"{name}: pairs where a change arrived")["measured"]
        for name in ("encoder", "decoder", "target", "cross")
    }
    assert found == {"encoder": 81, "decoder": 45, "target": 45, "cross": 45}
    assert "4,096" in learn.lab("reach").locator(".notes").inner_text()


@pytest.mark.parametrize(
    ("family", "title", "count"),
    [
        ("bert-base", "BERT base (uncased)", 109_482_240),
        ("gpt2-xl", "GPT-2 XL", 1_557_611_200),
        ("t5-small", "T5 small", 60_506_624),
    ],
)
def test_a_card_counts_what_was_published(learn: Learn, family: str, title: str, count: int) -> None:
    learn.visit("families")
    learn.set("card", family=family)
    assert learn.fact("card", "title") == title
    assert number(learn.fact("card", "parameters")) == count
    check = learn.check("card", f"all parts of {title}")
    assert (check["measured"], check["expected"], check["holds"]) == (count, count, True)
    table = learn.page.locator('#card [data-table="parts"]')
    assert table.get_by_text("pooler").count() == (family == "bert-base")


def test_all_published_counts_hold(learn: Learn) -> None:
    learn.visit("families")
    checks = learn.checks("counts")
    assert len(checks) == learn.page.locator('#counts [data-table="families"] tbody tr').count() > 17
    assert all(checks.values())


def test_cost_follows_length_family_and_precision(learn: Learn) -> None:
    learn.visit("families")
    learn.set("length", family="llama2-7b", tokens=4096)
    # 2 · 32 layers · 32 heads of 128 · 2 bytes, and with 8 key heads a quarter of it.
    assert learn.fact("length", "cache_memory") == "2.147 GB (524.3 kB for each further token)"
    learn.set("length", family="llama3-8b")
    assert "(131.1 kB for each further token)" in learn.fact("length", "cache_memory")
    learn.set("length", family="mistral-7b", tokens=2**20)
    assert "536.9 MB (nothing for a further token" in learn.fact("length", "cache_memory")
    learn.set("length", family="gpt2", tokens=512, precision="float32")
    assert learn.fact("length", "attention_memory") == "151 MB"
    assert all(learn.checks("length").values())
    learn.set("length", tokens=5000)
    assert "made for 1,024 tokens" in learn.lab("length").locator(".notes").inner_text()


def test_a_pasted_configuration_gets_its_card_or_its_refusal(learn: Learn) -> None:
    learn.tolerate(REFUSED)
    learn.visit("families")
    learn.set("own", text=json.dumps(OWN))
    # Embeddings, two blocks, the last norm.
    expected = 116 * 8 + 2 * (12 * 8**2 + 13 * 8) + 16
    assert number(learn.fact("own", "parameters")) == expected
    learn.set("own", text=json.dumps(OWN | {"flux": 3}))
    assert "flux = 3" in learn.problem("own")
    learn.set("own", text="layers: 12")
    assert "not readable JSON" in learn.problem("own")
    learn.set("own", text=json.dumps(OWN | {"n_layer": 3}))
    assert learn.problem("own") == ""
    assert number(learn.fact("own", "parameters")) == expected + 12 * 8**2 + 13 * 8


def test_closed_models_are_marked_as_estimates(learn: Learn) -> None:
    learn.visit("families")
    learn.lab("closed")
    row = learn.page.locator('#closed [data-table="closed"] tbody tr')
    assert row.locator("td").all_inner_texts()[:4] == ["GPT-4", "120", "1,800,000,000,000", "estimate"]


def test_ones_own_model_moves_along_the_scaling_laws(learn: Learn) -> None:
    learn.visit("families")
    learn.set("laws", parameters="1.5e9", tokens="2e10")
    assert number(learn.fact("laws", "size.loss")) == pytest.approx((8.8e13 / 1.5e9) ** 0.076, rel=1e-3)
    learn.set("laws", parameters="1e12")
    assert number(learn.fact("laws", "size.loss")) == pytest.approx(88**0.076, rel=1e-3)
    assert number(learn.fact("laws", "compute.loss")) == pytest.approx(
        (3.1e8 * 8.64e19 / (6 * 1e12 * 2e10)) ** 0.05, rel=1e-3
    )
    assert "guess" in learn.lab("laws").locator(".notes").inner_text()
    assert "a guess" in learn.fact("laws", "size.guess")
    assert all(learn.checks("laws").values())


@pytest.mark.usefixtures("family_weights")
def test_each_word_that_is_written_looks_for_its_moment_in_the_sound(learn: Learn) -> None:
    learn.visit("families")
    learn.lab("cross")
    said = next(iter(recordings().values())).said
    assert learn.fact("cross", "written") == said
    assert learn.check("cross", "words written as a listener hears them")["measured"] == len(said.split())
    first, last = re.findall(r"looks at ([\d.]+) s, .* at ([\d.]+) s", learn.fact("cross", "looks"))[0]
    assert float(first) < float(last) < 3.3
    learn.set("cross", target=" He might even have been eaten.")
    assert learn.fact("cross", "written") == "He might even have been eaten."
    assert learn.page.locator('#cross [data-check^="words written"]').count() == 0
    play = learn.page.locator("#cross").get_by_role("button", name="Play")
    play.click()
    learn.page.locator("#cross").get_by_role("button", name="Stop").click()


@pytest.mark.usefixtures("family_weights")
def test_without_the_sound_every_token_surprises(learn: Learn) -> None:
    learn.visit("families")
    name = "mean surprise, by a plain run and cross-entropy"
    found = learn.check("worth", name)
    assert found["holds"]
    assert number(learn.fact("worth", "surprise")) == pytest.approx(found["measured"], rel=1e-3)
    assert number(learn.fact("worth", "surprise_without")) > 10 * found["measured"]
    learn.set("worth", target=" Green stones sing.")
    assert learn.check("worth", name)["expected"] > 10 * found["expected"]
