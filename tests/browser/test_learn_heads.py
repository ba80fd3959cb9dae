"""Many heads: their sum (C7), their labels (C8), and the search for those that link two words (C8)."""

import pytest
from playwright.sync_api import expect

from tests.browser.atlas import REFUSED
from tests.browser.learn import Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]

DIFFERENCE = "largest difference between the sum of all heads and the layer's output"


def test_all_heads_of_a_layer_and_one_of_them_large(learn: Learn) -> None:
    learn.visit("heads")
    pictures = learn.page.locator(".head-pictures button")
    expect(pictures).to_have_count(12)
    expect(learn.page.locator('.head-pictures [aria-pressed="true"]')).to_have_text("H1")
    pictures.nth(7).focus()
    learn.page.keyboard.press("Enter")
    title = learn.lab("all-heads").locator('[data-chart="pattern"] figcaption')
    expect(title).to_have_text("Where L3H7 looks")
    learn.set("all-heads", layer=5)
    expect(title).to_have_text("Where L5H7 looks")
    apart, moved = learn.fact("all-heads", "one_pattern.apart"), learn.fact("all-heads", "one_pattern.moved")
    assert 0 < float(apart.removesuffix(" %")) < 100
    assert float(moved.removesuffix(" %")) > 1
    learn.set("all-heads", model="smollm2", layer=2, head=8)
    expect(pictures).to_have_count(9)
    assert learn.fact("all-heads", "heads") == "9"


def test_one_pattern_for_all_heads_costs_the_model_its_guesses(learn: Learn) -> None:
    learn.visit("heads")
    learn.lab("one-pattern")
    own, one = (number(learn.fact("one-pattern", f"surprise.{which}")) for which in ("own", "one"))
    assert one > own + 2
    assert learn.fact("one-pattern", "surprise.change") == "more"
    assert all(learn.checks("one-pattern").values())
    learn.set("one-pattern", model="minilm")
    assert number(learn.fact("one-pattern", "cosine.one")) < 0.9
    expect(learn.page.locator("#one-pattern [data-if=surprise]")).to_be_hidden()


def test_heads_add_up_to_the_layers_output_whatever_the_layer(learn: Learn) -> None:
    learn.visit("heads")
    seen = set()
    for layer in (0, 5):
        learn.set("sum", layer=layer)
        check = learn.check("sum", DIFFERENCE)
        assert check["holds"]
        assert 0 < check["measured"] < 1e-4
        seen.add(check["measured"])
        assert number(learn.fact("sum", "difference")) == pytest.approx(check["measured"], rel=0.01)
    assert len(seen) == 2
    assert "384 × 384" in learn.page.locator('#sum [data-table="steps"]').inner_text()
    learn.set("sum", model="smollm2")
    assert learn.check("sum", DIFFERENCE)["holds"]
    assert "576 × 576" in learn.page.locator('#sum [data-table="steps"]').inner_text()


def test_subspaces_against_random_ones(learn: Learn) -> None:
    learn.visit("heads")
    learn.lab("subspaces")
    # K/D of minilm and of smollm2.
    assert number(learn.fact("subspaces", "subspaces.random")) == pytest.approx(32 / 384, abs=1e-4)
    before = learn.fact("subspaces", "subspaces.mean")
    learn.set("subspaces", projection="queries")
    assert learn.fact("subspaces", "subspaces.of") == "queries"
    assert learn.fact("subspaces", "subspaces.mean") != before
    learn.set("subspaces", model="smollm2")
    assert number(learn.fact("subspaces", "subspaces.random")) == pytest.approx(64 / 576, abs=1e-4)


def test_lengths_follow_the_layer(learn: Learn) -> None:
    learn.visit("heads")
    learn.lab("lengths")
    assert learn.charts("lengths") == ["lengths", "all-lengths"]
    before = learn.fact("lengths", "longest.length")
    learn.set("lengths", layer=0)
    assert learn.fact("lengths", "longest.length") != before
    found = [learn.fact("lengths", f"{which}.length") for which in ("longest", "shortest")]
    longest, shortest = map(number, found)
    assert longest > shortest > 0


def test_heads_that_link_it_to_animal(learn: Learn) -> None:
    learn.visit("heads")
    learn.lab("search")
    assert learn.fact("search", "best.name") == "L3H1"
    assert number(learn.fact("search", "best.weight")) == pytest.approx(0.677, abs=1e-3)
    assert all(learn.checks("search").values())
    learn.set("search", target="street")
    assert learn.fact("search", "target") == "street"
    assert number(learn.fact("search", "best.weight")) < 0.677
    learn.tolerate(REFUSED)
    learn.set("search", target="nowhere")
    assert "no word “nowhere”" in learn.problem("search")
    learn.set("search", target="animal", model="smollm2")
    assert learn.problem("search") == ""
    assert learn.fact("search", "heads") == "270"
    learn.set("search", word="animal", target="it")
    expect(learn.page.locator("#search a.see")).to_be_hidden()
    finding = learn.page.locator("#search .finding").inner_text()
    assert "No head links “animal” to “it”" in finding
    assert "–" not in finding


def test_the_search_leads_to_that_head_in_explore(learn: Learn) -> None:
    learn.visit("heads")
    learn.lab("search")
    learn.page.locator("#search a.see").click()
    learn.page.wait_for_selector("html[data-state=ready]", state="attached")
    expect(learn.page.get_by_test_id("text")).to_have_value(
        "The animal didn't cross the street because it was too tired."
    )
    expect(learn.page.get_by_test_id("matrix")).to_be_visible()
    assert "L3H1" in learn.page.locator("body").inner_text()


def test_labels_with_their_definitions_scores_and_the_users_text(learn: Learn) -> None:
    learn.visit("heads")
    learn.lab("labels")
    assert learn.fact("labels", "best.name") == "L3H1"
    said = "In your text L3H1 links it → animal 0.677: it is active there."
    assert learn.fact("labels", "best.said") == said
    assert "antecedent" in learn.fact("labels", "chosen.definition")
    assert all(learn.checks("labels").values())
    score, beside, fixed = (
        number(learn.fact("labels", path)) for path in ("best.score", "best.beside", "chosen.fixed")
    )
    assert score - beside == pytest.approx(fixed, abs=1e-3)
    assert "L3H1" in learn.fact("labels", "several_example")
    learn.set("labels", text="The dog sleeps.")
    assert learn.fact("labels", "best.said") == "Of L3H1 your text shows nothing: no pronoun."
    learn.set("labels", label="previous")
    assert learn.fact("labels", "best.name") == "L0H2"
    assert number(learn.fact("labels", "best.score")) > 0.99
    learn.page.get_by_text("How each label is defined").click()
    expect(learn.page.locator('#labels [data-table="definitions"]')).to_contain_text("Attention sink")
