"""Context (C6): one word in two sentences, its vectors, where its heads look, and the nearest sense."""

import pytest
from playwright.sync_api import expect

from tests.browser.learn import Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]

START = "cosine before the first layer, positions off"
SAME = "He sat down on the bank."


def test_the_word_parts_from_itself_and_does_not_in_one_sentence(learn: Learn) -> None:
    learn.visit("context")
    learn.lab("parting")
    start, end, others = (number(learn.fact("parting", path)) for path in ("start", "end", "others_end"))
    assert others < end < start < 1
    assert learn.check("parting", START)["measured"] == pytest.approx(1, abs=1e-5)
    learn.set("parting", first=SAME, second=SAME)
    assert number(learn.fact("parting", "end")) == pytest.approx(1, abs=1e-4)
    assert "one and the same at every layer" in learn.fact("parting", "parting")
    learn.set("parting", second="He put money in the bank.")
    assert number(learn.fact("parting", "end")) < 0.99


def test_another_word(learn: Learn) -> None:
    learn.visit("context")
    learn.set(
        "parting", word="spring", first="The spring in the clock broke.", second="Flowers bloom in spring."
    )
    assert learn.fact("parting", "word") == "spring"
    assert number(learn.fact("parting", "end")) < 0.9
    learn.set("parting", word="autumn")
    assert "The first text has no word “autumn”" in learn.problem("parting")


def test_under_a_causal_mask_later_words_change_nothing(learn: Learn) -> None:
    learn.visit("context")
    learn.set(
        "parting",
        model="smollm2",
        first="On the bank there was mud.",
        second="On the bank there was money.",
    )
    assert number(learn.fact("parting", "start")) == pytest.approx(1, abs=1e-4)
    assert number(learn.fact("parting", "end")) == pytest.approx(1, abs=1e-4)
    expect(learn.lab("parting").locator(".notes")).to_contain_text("hides what stands after the word")
    learn.set("parting", first="Mud lay on the bank.", second="Money lay in the bank.")
    assert number(learn.fact("parting", "end")) < 0.95


def test_its_heads_look_at_river_and_at_account(learn: Learn) -> None:
    learn.visit("context")
    learn.lab("looks")
    rows = {
        side: learn.page.locator(f'#looks [data-table="{side}.looks"] tbody tr')
        for side in ("first", "second")
    }
    expect(rows["first"].first).to_contain_text("river")
    expect(rows["second"].first).to_contain_text("account")
    title = learn.lab("looks").locator('[data-chart="looks-first"] figcaption')
    learn.set("looks", layer=4)
    expect(title).to_contain_text("layer 4")
    learn.set("looks", first="They sat by the lake on the bank.")
    expect(rows["first"].filter(has_text="lake")).to_have_count(1)


def test_the_nearest_sense_moves_with_the_sentence(learn: Learn) -> None:
    learn.visit("context")
    learn.lab("senses")
    assert learn.fact("senses", "first.nearest.text").startswith("Fishermen")
    assert learn.fact("senses", "second.nearest.text").startswith("He needed a loan")
    learn.set("senses", first="She needed a loan and asked for money at the bank.")
    assert learn.fact("senses", "first.nearest.text").startswith("He needed a loan")
    learn.set("senses", senses="A bank gave him a loan.\nNothing of the kind.")
    assert "Example 2 has no word “bank”" in learn.problem("senses")
