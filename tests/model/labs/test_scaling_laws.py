import math

import pytest
from pydantic import ValidationError

from model.labs import scaling_laws
from model.labs.bench import Bench
from model.labs.families import card
from model.labs.parameters.families import ScalingLaws
from model.labs.published import Law


def run(**values):
    return scaling_laws.run(ScalingLaws(**values), Bench())


@pytest.mark.parametrize("size", [1.0, 8.5e7, 1.5e9, 1e16])
def test_the_laws_are_those_of_kaplan(size):
    facts = run(parameters=size, tokens=3e11).facts
    assert facts["size"]["loss"] == pytest.approx((8.8e13 / size) ** 0.076, rel=1e-12)
    assert facts["data"]["loss"] == pytest.approx((5.4e13 / 3e11) ** 0.095, rel=1e-12)
    days = 6 * size * 3e11 / 8.64e19
    assert facts["compute"]["x"] == pytest.approx(days, rel=1e-12)
    assert facts["compute"]["loss"] == pytest.approx((3.1e8 / days) ** 0.050, rel=1e-12)


def test_at_its_constant_a_law_says_one_nat():
    facts = run(parameters=8.8e13, tokens=5.4e13).facts
    assert facts["size"]["loss"] == pytest.approx(1)
    assert facts["size"]["perplexity"] == pytest.approx(math.e)
    assert facts["data"]["loss"] == pytest.approx(1)


def test_doubling_saves_five_percent():
    assert run().facts["size"]["doubling_saves"] == pytest.approx(1 - 2**-0.076)


def test_each_law_is_held_against_a_second_published_fit():
    checks = {check.about: check for check in run().checks}
    assert all(check.holds for check in checks.values())
    assert {name: check.origin for name, check in checks.items()} == dict.fromkeys(checks, "published")
    # Kaplan et al. 2020, table 2, near 10^6 parameters and 7 · 10^8 tokens; Brown et al. 2020 at a PF-day.
    assert checks["size"].expected == pytest.approx((6.4e13 / 1e6) ** 0.076, rel=0.01)
    assert checks["data"].expected == pytest.approx((1.8e13 / 7e8) ** 0.103, rel=0.01)
    assert checks["compute"].expected == pytest.approx(2.57, rel=0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda law, x: 7 * (law.constant / x) ** law.exponent,
        lambda law, x: (3 * law.constant / x) ** law.exponent,
        lambda law, x: (law.constant / x) ** (1.1 * law.exponent),
    ],
)
def test_a_law_that_says_something_else_does_not_hold(monkeypatch, wrong):
    monkeypatch.setattr(Law, "loss", wrong)
    assert not any(check.holds for check in run().checks)


def test_ones_own_model_lies_on_each_curve():
    for chart in run(parameters=3e8, tokens=7e9).series:
        (own,) = [line for line in chart.lines if line.name.startswith("your model")]
        curve = chart.lines[0]
        nearest = min(range(len(curve.x)), key=lambda i, at=own.x[0]: abs(math.log(curve.x[i] / at)))
        assert own.y[0] == pytest.approx(curve.y[nearest], rel=0.05)
        assert curve.y[0] > own.y[0] > curve.y[-1]


def test_published_models_are_counted_without_embeddings():
    rows = {row["model"]: row for row in run().facts["models"]}
    assert rows["GPT-2 small"]["parameters without embeddings"] == 85_056_000
    assert rows["GPT-2 small"]["loss predicted"] == pytest.approx((8.8e13 / 85_056_000) ** 0.076)
    assert "BERT base (uncased)" not in rows


@pytest.mark.parametrize(
    ("name", "size"),
    # Layers × (2 d² + 2 d · d_kv + 3 d · d_ff + two gains) and the last gains: no vocabulary matrix.
    [
        ("gpt2", 85_056_000),
        ("llama2-7b", 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 4096),
        ("llama3-8b", 6_979_588_096),
        ("mistral-7b", 6_979_588_096),
    ],
)
def test_neither_matrix_of_the_vocabulary_is_counted(name, size):
    assert card(name, 1, "float32").without_embeddings == size


def test_beyond_what_was_fitted_is_said():
    (note,) = run(parameters=1e9, tokens=1e10).notes
    assert "LLaMA 2 7B, LLaMA 3 8B, Mistral 7B and GPT-3 175B" in note
    notes = run(parameters=1.75e11, tokens=3e11).notes
    assert sum("guess" in note for note in notes) == 3
    tiny = run(parameters=1, tokens=1)
    assert sum("at 1 it is a guess" in note for note in tiny.notes) == 2
    assert all("guess" in tiny.facts[law]["guess"] for law in ("size", "data", "compute"))
    assert all(check.holds for check in tiny.checks)


def test_points_beyond_what_was_trained_are_flagged_in_table_and_picture():
    result = run(parameters=1.75e11)
    rows = {row["model"]: row["this is"] for row in result.facts["models"]}
    assert rows["GPT-2 XL"] == "within what was trained"
    assert rows["LLaMA 2 7B"].startswith("a guess, 4.")
    assert rows["GPT-3 175B"].startswith("a guess, 116")
    lines = {line.name: line for line in result.series[0].lines}
    assert max(lines["L(N)"].x) == pytest.approx(1.5e9)
    assert min(lines["published models, beyond what was trained"].x) > 1.5e9
    assert max(lines["published models"].x) < 1.5e9
    assert "your model, beyond what was trained" in lines


@pytest.mark.parametrize(
    "values", [{"parameters": 0}, {"parameters": 1e17}, {"tokens": 0.5}, {"tokens": "many"}]
)
def test_what_cannot_be_asked_is_refused(values):
    with pytest.raises(ValidationError):
        ScalingLaws(**values)
