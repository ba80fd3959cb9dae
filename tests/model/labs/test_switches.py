"""Parts left out of a real model: what must change, what must not, and what is said where nothing is left."""

from typing import Any

import pytest
import torch

from model.errors import InputError
from model.labs import switches
from model.labs.bench import Bench
from model.labs.parameters.block import Switches
from model.labs.reading import run_text
from model.labs.result import Chart, Result

pytestmark = pytest.mark.weights


def line(result: Result, chart: str, number: int = 0) -> list[float]:
    found = next(one for one in result.series if isinstance(one, Chart) and one.id == chart)
    return list(found.lines[number].y)


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_without_residuals_tokens_become_one(real_bench: Bench, model: str) -> None:
    result = switches.run(Switches(model=model), real_bench)
    assert result.facts["changed_sameness"] == pytest.approx(1, abs=1e-6)
    assert result.facts["own_sameness"] < 0.7


def test_sameness_is_the_mean_cosine_between_tokens(real_bench: Bench) -> None:
    ran = run_text(real_bench, "minilm", Switches().text, record=("resid",))
    x = torch.nn.functional.normalize(ran.trace.resid["encoder", 4], dim=-1)
    pairs = [float(x[i] @ x[j]) for i in range(len(x)) for j in range(len(x)) if i != j]
    own = line(switches.run(Switches(), real_bench), "sameness")
    assert own[4] == pytest.approx(sum(pairs) / len(pairs), abs=1e-5)


def test_one_layer_leaves_the_earlier_ones_alone(real_bench: Bench) -> None:
    chosen = Switches(leave_out="sublayer", around="ffn", where="one layer", layer=3)
    likeness = line(switches.run(chosen, real_bench), "likeness")
    assert likeness[:4] == pytest.approx([1] * 4, abs=1e-9)
    assert all(value < 0.999 for value in likeness[4:])


def test_the_next_token_before_and_after(real_bench: Bench) -> None:
    chosen = Switches(model="smollm2", text="The capital of France is", leave_out="sublayer", around="ffn",
                      where="one layer", layer=0)  # fmt: skip
    facts = switches.run(chosen, real_bench).facts
    assert facts["own_answer"] == "␣Paris"
    assert facts["changed_answer"] != "␣Paris"
    assert 0.5 < facts["shift"] <= 1
    loaded = real_bench.model("smollm2")
    ran = run_text(real_bench, "smollm2", "The capital of France is")
    own = torch.softmax(loaded.transformer.logits(ran.trace.final[None])[0, -1], dim=-1).max()
    assert facts["output"][0]["p, own"] == pytest.approx(float(own), rel=1e-4)


def test_numbers_out_of_range_are_said(real_bench: Bench) -> None:
    result = switches.run(Switches(model="smollm2", leave_out="norm"), real_bench)
    assert any("grew out of range before layer" in note for note in result.notes)
    assert result.facts["changed_answer"] == "nothing"
    assert result.as_json()["facts"]["shift"] is None


def test_one_token_and_no_layer(real_bench: Bench) -> None:
    assert any(
        "one token" in note for note in switches.run(Switches(model="smollm2", text="a"), real_bench).notes
    )
    with pytest.raises(InputError, match="There is no layer 40"):
        switches.run(Switches(where="one layer", layer=40), real_bench)
    switches.run(Switches(where="every layer", layer=40), real_bench)


CHOICES = [
    (leave_out, around, where)
    for leave_out in ("residual", "norm", "sublayer")
    for around in ("attention", "ffn", "both")
    for where in ("every layer", "one layer")
]


@pytest.mark.parametrize("choice", CHOICES)
def test_every_check_holds(real_bench: Bench, choice: tuple[Any, Any, Any]) -> None:
    leave_out, around, where = choice
    given = Switches(model="minilm", leave_out=leave_out, around=around, where=where, layer=4)
    checks = switches.run(given, real_bench).checks
    assert len(checks) == 4
    assert [check.name for check in checks if not check.holds] == []


# Whether a norm before a sublayer was applied, the sum after it cannot tell.
TOLD = [
    (model, choice)
    for model in ("minilm", "smollm2")
    for choice in CHOICES
    if model == "minilm" or choice[0] != "norm"
]


@pytest.mark.parametrize(("model", "choice"), TOLD)
def test_a_plan_that_does_nothing_is_seen(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch, model: str, choice: tuple[Any, Any, Any]
) -> None:
    leave_out, around, where = choice
    monkeypatch.setattr(switches, "_plan", lambda *_: [])
    given = Switches(model=model, leave_out=leave_out, around=around, where=where, layer=3)
    held = {check.name: check.holds for check in switches.run(given, real_bench).checks}
    assert [name for name, holds in held.items() if not holds] == [
        "the changed layers put together by hand: largest relative difference of their streams"
    ]


def test_a_change_in_an_earlier_layer_is_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = switches._plan
    monkeypatch.setattr(
        switches, "_plan", lambda loaded, parameters: own(loaded, parameters.model_copy(update={"layer": 1}))
    )
    given = Switches(where="one layer", layer=4, leave_out="sublayer")
    held = [check.holds for check in switches.run(given, real_bench).checks]
    assert held == [False, False, True, True]


def test_pictures_that_are_not_the_streams_are_seen(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switches, "sameness", lambda _: 0.5)
    monkeypatch.setattr(switches, "rms", lambda x: 1.01 * x.square().mean(dim=-1).sqrt())
    failing = {check.about for check in switches.run(Switches(), real_bench).checks if not check.holds}
    assert failing == {"sameness", "scale"}


@pytest.mark.parametrize(("given", "said"), [
    ({}, "the tokens can no longer be told apart: all point one way"),
    (
        {"leave_out": "norm", "around": "attention", "where": "one layer", "layer": 3},
        "the tokens stay as far apart as they were",
    ),
    ({"leave_out": "norm", "around": "attention"}, "the tokens move farther apart, but can be told apart"),
    ({"where": "one layer", "layer": 3}, "the tokens move closer together, but can be told apart"),
])  # fmt: skip
def test_the_sentence_says_what_happened(real_bench: Bench, given: dict[str, Any], said: str) -> None:
    facts = switches.run(Switches.model_validate(given), real_bench).facts
    assert facts["verdict"] == said
    assert facts["compared"] is True


def test_what_cannot_be_compared_is_not_told(real_bench: Bench) -> None:
    assert switches.run(Switches(model="smollm2", leave_out="norm"), real_bench).facts["compared"] is False
    assert switches.run(Switches(model="smollm2", text="a"), real_bench).facts["compared"] is False
