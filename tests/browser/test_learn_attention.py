"""The page “One row of attention”: C3, C4 and C18 as a reader tries them."""

import json
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator

from tests.browser.atlas import REFUSED
from tests.browser.conftest import Opener
from tests.browser.learn import Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def pick(learn: Learn, section: str, role: str, token: int) -> None:
    """Clicks a token of a section, and waits for every lab to follow."""
    learn.page.locator(f"#{section} .pick-tokens .{role}").nth(token).click()
    learn.lab(section)
    learn.page.wait_for_selector("html[data-state=ready]", state="attached")


def ran(learn: Learn, section: str) -> dict[str, Any]:
    return json.loads(learn.lab(section).get_attribute("data-view") or "{}")


def table(section: Locator) -> list[list[str]]:
    return [row.locator("td").all_inner_texts() for row in section.locator(".lab-table tbody tr").all()]


def traced(learn: Learn, values: dict[str, Any], path: str, plan: tuple[object, ...] = ()) -> dict[str, Any]:
    """What the traces of the API, another door, say of the same run."""
    posted = learn.page.request.post(
        f"{learn.server}api/traces",
        data={"model": values["model"], "text": values["text"], "plan": list(plan)},
        headers={"Origin": learn.server.rstrip("/")},
    ).json()
    answer = learn.page.request.get(f"{learn.server}api/traces/{posted['id']}/{path}").json()
    assert isinstance(answer, dict)
    return answer


def test_a_query_and_a_key_are_picked_and_their_products_add_up(learn: Learn) -> None:
    learn.visit("attention")
    learn.lab("look-up")
    assert learn.fact("look-up", "strongest") == "animal"
    pick(learn, "look-up", "query", 6)
    pick(learn, "look-up", "key", 8)
    values = ran(learn, "look-up")
    assert (values["query"], values["key"]) == (6, 8)
    assert (learn.fact("look-up", "query"), learn.fact("look-up", "key")) == ("cross", "street")
    pair = traced(learn, values, "pair/encoder.self.3/1?query=6&key=8")
    total = learn.check("look-up", "sum of the products q × k")
    assert total["measured"] == pytest.approx(np.dot(pair["q"], pair["k"]), abs=1e-4)
    assert all(learn.checks("look-up").values())
    assert "q = x·W_Q + b, largest difference" in learn.checks("look-up")
    said = learn.page.locator("#look-up")
    assert "adds a fixed vector b" in said.inner_text()
    assert "[CLS] and [SEP]" in said.inner_text()
    learn.set("look-up", model="smollm2")
    assert "adds a fixed vector b" not in said.inner_text()
    assert "rotates q and k" in said.inner_text()


def test_every_stage_of_a_row_and_its_sum(learn: Learn) -> None:
    learn.visit("attention")
    learn.lab("row")
    pick(learn, "row", "query", 3)
    rows = table(learn.page.locator("#row"))
    weights = [number(cells[-2]) for cells in rows]
    assert len(rows) == 16
    assert sum(weights) == pytest.approx(1, abs=2e-3)
    scaled = np.array([number(cells[2]) for cells in rows])
    np.testing.assert_allclose(weights, np.exp(scaled) / np.exp(scaled).sum(), rtol=5e-3)
    assert learn.check("row", "sum of the weights")["measured"] == pytest.approx(1, abs=1e-6)


def test_the_causal_mask_forbids_what_comes_later(learn: Learn) -> None:
    learn.visit("attention")
    learn.lab("row")
    assert "Choose the causal mask" in learn.page.locator("#row").inner_text()
    learn.set("row", mask="causal")
    assert "Choose the causal mask" not in learn.page.locator("#row").inner_text()
    rows = table(learn.page.locator("#row"))
    assert learn.fact("row", "forbidden") == "5"
    assert [cells[-3] == "−∞" for cells in rows] == [place > 10 for place in range(16)]
    assert [cells[-2] == "0" for cells in rows] == [place > 10 for place in range(16)]
    pick(learn, "row", "query", 0)
    assert learn.fact("row", "forbidden") == "15"
    assert learn.check("row", "largest weight of a forbidden key")["measured"] == 0


def test_weighted_values_are_the_output_also_of_a_decoder(learn: Learn) -> None:
    learn.visit("attention")
    learn.set("look-up", model="smollm2")
    learn.page.locator('#values [data-pick="layer"]').select_option("17")
    learn.lab("values")
    learn.page.locator('#values [data-pick="head"]').select_option("4")
    check = learn.check("values", "Σ weight × v = output, largest difference")
    assert check["holds"]
    assert 0 < check["measured"] < 1e-5
    assert ran(learn, "values")["model"] == "smollm2"
    assert learn.page.locator("#values .query[aria-pressed=true]").inner_text().strip() == "too"


def test_what_is_picked_in_one_section_is_picked_in_all(learn: Learn) -> None:
    learn.visit("attention")
    for section in ("look-up", "row", "values", "mask"):
        learn.lab(section)
    learn.page.locator('#mask [data-pick="head"]').select_option("7")
    learn.page.wait_for_selector("html[data-state=ready]", state="attached")
    assert {ran(learn, section)["head"] for section in ("look-up", "row", "values", "mask")} == {7}
    assert "#mask" in learn.page.url


def test_a_section_opened_by_its_address_keeps_its_settings(opened: Opener, server: str) -> None:
    learn = opened(server, kind=Learn)
    assert isinstance(learn, Learn)
    learn.visit("attention", "#row?layer=5&query=4")
    learn.lab("row")
    learn.page.wait_for_selector("html[data-state=ready]", state="attached")
    assert (ran(learn, "row")["layer"], ran(learn, "row")["query"]) == (5, 4)


def test_masks_are_swapped_on_the_same_weights(learn: Learn) -> None:
    learn.visit("attention")
    learn.lab("mask")
    for mask, reach, forbidden in (
        ("causal", None, 120),
        ("window", 3, 256 - 58),
        ("prefix", 5, 110),
        ("own", None, 0),
    ):
        learn.set("mask", mask=mask, **({} if reach is None else {"reach": reach}))
        assert learn.lab("mask").locator('[data-control="reach"]').first.is_visible() == (reach is not None)
        assert learn.fact("mask", "forbidden") == str(forbidden)
        assert all(learn.checks("mask").values())
    assert learn.charts("mask") == ["own", "chosen"]


def test_under_a_causal_mask_no_token_notices_another_ending(learn: Learn) -> None:
    learn.visit("attention")
    learn.lab("future")
    assert number(learn.fact("future", "noticed_own")) > 10
    assert learn.check("future", "what earlier tokens notice under the chosen mask")["measured"] == 0
    assert "do not move at all" in learn.page.locator("#future .finding").inner_text()
    learn.set("future", mask="bidirectional", ending="hungry.")
    assert learn.fact("future", "other_last") == "hungry."
    assert number(learn.fact("future", "noticed_chosen")) > 1
    assert learn.checks("future") == {}


def test_outputs_and_predictions_change_with_the_mask(learn: Learn) -> None:
    learn.visit("attention")
    learn.lab("outputs")
    before = table(learn.page.locator("#outputs"))
    assert [row[1] for row in before] != [row[3] for row in before]
    learn.set("outputs", mask="causal")
    said = learn.page.locator("#outputs").inner_text()
    assert "No output moves" in said
    assert "look ahead" not in said
    after = table(learn.page.locator("#outputs"))
    assert [row[1:3] for row in after] == [row[3:] for row in after] == [row[1:3] for row in before]
    learn.set("outputs", model="minilm", mask="causal")
    said = learn.page.locator("#outputs").inner_text()
    assert "no longer look ahead" in said
    assert "predicts no token" in said
    assert len(table(learn.page.locator("#outputs"))) == 1


def test_a_token_that_is_not_there_gives_way_to_the_first_and_another_can_be_picked(learn: Learn) -> None:
    learn.tolerate(REFUSED)
    learn.visit("attention")
    learn.set("look-up", text="A short text.")
    assert "query 0 is shown" in learn.lab("look-up").locator(".notes").inner_text()
    assert learn.fact("look-up", "query") == "[CLS]"
    learn.page.locator("#look-up .pick-tokens .query").nth(1).click()
    learn.lab("look-up")
    assert learn.problem("look-up") == ""
    assert learn.fact("look-up", "query") == "a"
