"""Parts left out of a real model: what must change, what must not, and what is said where nothing is left."""

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
