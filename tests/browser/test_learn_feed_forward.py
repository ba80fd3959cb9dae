"""C15 in the browser: curves, forms, neurons and where "Paris" enters, each moved by an input."""

import math

import pytest

from tests.browser.atlas import REFUSED
from tests.browser.learn import Learn
from tests.browser.test_learn_block import number, table

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def test_curves_and_derivatives(learn: Learn) -> None:
    learn.visit("feed-forward")
    assert all(learn.checks("curves").values())
    learn.set("curves", at=2)
    rows = table(learn, "curves", "table")
    normal = (1 + math.erf(2 / math.sqrt(2))) / 2
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    assert number(rows["GELU"][0]) == pytest.approx(2 * normal, rel=1e-3)
    assert number(rows["GELU"][2]) == pytest.approx(normal + 2 * density, rel=1e-3)
    assert number(rows["ReLU"][0]) == 2
    assert learn.fact("curves", "at") == "2"


def test_forms_at_equal_parameters(learn: Learn) -> None:
    learn.visit("feed-forward")
    learn.set("forms", width=96, steps=20)
    rows = table(learn, "forms", "forms")
    assert number(rows["SwiGLU"][1]) == 256
    assert rows["SwiGLU"][3] == rows["ReLU"][3] == "73,728"
    assert number(rows["ReLU"][4]) == pytest.approx(50, abs=1)
    assert all(learn.checks("forms").values())
    learn.set("forms", expansion=2)
    assert table(learn, "forms", "forms")["ReLU"][3] == "36,864"


def test_the_neurons_of_a_picked_token(learn: Learn) -> None:
    learn.visit("feed-forward")
    learn.lab("neurons")
    assert learn.fact("neurons", "predicted") == "␣Paris"
    learn.set("neurons", by="the prediction")
    first = learn.page.locator('#neurons [data-table="loudest"] tbody tr').first.inner_text()
    assert "capital" in first
    learn.page.locator(".token-row button").nth(1).click()
    learn.page.wait_for_selector('.token-row button:nth-child(2)[aria-pressed="true"]')
    learn.lab("neurons")
    assert learn.fact("neurons", "token") == "␣capital"
    assert all(learn.checks("neurons").values())
    learn.set("neurons", by="what they write")
    learn.set("neurons", layer=2, model="minilm")
    assert learn.fact("neurons", "expansion") == "4"
    assert not learn.page.locator('#neurons [data-fact="predicted"]').is_visible()
    assert "no next token" in learn.lab("neurons").locator(".notes").inner_text()


def test_where_paris_enters(learn: Learn) -> None:
    learn.visit("feed-forward")
    learn.lab("facts")
    assert learn.fact("facts", "answer") == "␣Paris"
    assert learn.fact("facts", "rank") == "1"
    assert all(learn.checks("facts").values())
    parts = [
        number(learn.fact("facts", f"totals.{name}")) for name in ("feed-forward", "attention", "embedding")
    ]
    assert sum(parts) == pytest.approx(number(learn.fact("facts", "logit")), abs=0.02)
    assert learn.charts("facts") == ["rank", "direct", "causal"]
    before = learn.fact("facts", "p")
    learn.set("facts", prompt="The capital of Italy is", answer="Rome")
    assert learn.fact("facts", "answer") == "␣Rome"
    assert learn.fact("facts", "p") != before
    assert all(learn.checks("facts").values())


def test_what_cannot_be_run_is_said(learn: Learn) -> None:
    learn.tolerate(REFUSED)
    learn.visit("feed-forward")
    learn.set("curves", at="far")
    assert learn.problem("curves") == "At: write a number between −10 and 10."
    learn.set("curves", at=0)
    assert learn.problem("curves") == ""
    # A model that predicts nothing is not offered; a link may still name it.
    offered = learn.lab("facts").locator('[data-control="model"] option')
    assert [one.get_attribute("value") for one in offered.all()] == ["smollm2"]
    learn.visit("feed-forward", "#facts?model=minilm")
    learn.lab("facts")
    assert "minilm predicts no next token" in learn.problem("facts")
