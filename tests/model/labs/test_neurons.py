"""A token's neurons: they add up to the layer, and what they push is the unembedding's own word."""

from dataclasses import replace

import pytest
import torch

from model.errors import InputError
from model.labs import neurons
from model.labs.bench import Bench
from model.labs.parameters.feed_forward import Neurons
from model.labs.reading import run_text

pytestmark = pytest.mark.weights


@pytest.mark.parametrize(
    ("model", "layer", "token"), [("smollm2", 0, 0), ("smollm2", 24, -1), ("minilm", 5, 3)]
)
def test_neurons_add_up_to_the_layer(real_bench: Bench, model: str, layer: int, token: int) -> None:
    result = neurons.run(Neurons(model=model, layer=layer, token=token), real_bench)
    assert all(check.holds for check in result.checks)


def test_a_missing_neuron_is_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = neurons._layer

    def without(ran: neurons.Ran, parameters: Neurons) -> neurons.Layer:
        layer = own(ran, parameters)
        layer.hidden[:, 1005] = 0
        return layer

    monkeypatch.setattr(neurons, "_layer", without)
    assert not neurons.run(Neurons(), real_bench).checks[0].holds


def test_the_loudest_neuron_is_the_traces(real_bench: Bench) -> None:
    ran = run_text(real_bench, "smollm2", "The capital of France is", record=("ffn_act",))
    down = ran.loaded.transformer.stack.blocks[24].ffn.down.weight
    writes = ran.trace.kept["ffn_act"]["decoder", 24][-1].abs() * down.norm(dim=0)
    row = neurons.run(Neurons(), real_bench).facts["loudest"][0]
    assert int(row["neuron"]) == int(writes.argmax())
    assert row["writes"] == pytest.approx(float(writes.max()), rel=1e-4)


def test_pushes_are_those_of_the_unembedding(real_bench: Bench) -> None:
    row = neurons.run(Neurons(by="the prediction"), real_bench).facts["loudest"][0]
    model = real_bench.model("smollm2").transformer
    write = row["activation"] * model.stack.blocks[24].ffn.down.weight[:, int(row["neuron"])]
    logits = model.head.projection.weight @ (write * model.stack.final_norm.gain)
    best = real_bench.model("smollm2").encoder.label(int(logits.argmax()))
    assert row["pushes towards"].split(" ")[0] == best.replace(" ", "␣")
    # A neuron whose words are capitals is what brings this layer's share of the answer.
    assert row["adds to “␣Paris”"] > 1


def test_the_share_of_the_prediction_is_that_of_the_whole_logit(real_bench: Bench) -> None:
    """Against the whole layer's share, taken by hand; the two loudest bring most of it."""
    ran = run_text(real_bench, "smollm2", "The capital of France is", record=("resid", "ffn_out"))
    model = ran.loaded.transformer
    last = ran.trace.resid["decoder", 30][-1]
    logits = model.logits(ran.trace.final[None])[0, -1]
    answer = int(logits.argmax())
    scale = 1 / (last.square().mean() + model.stack.final_norm.eps).sqrt()
    out = ran.trace.kept["ffn_out"]["decoder", 24][-1] * model.stack.final_norm.gain * scale
    direction = model.head.projection.weight[answer] - model.head.projection.weight.mean(dim=0)
    chosen = Neurons(by="the prediction", top=30)
    top = neurons.run(chosen, real_bench).facts["loudest"]
    assert sum(row["adds to “␣Paris”"] for row in top[:2]) == pytest.approx(1.547, abs=0.01)
    assert float(out @ direction) == pytest.approx(2.3017, abs=0.01)


def test_a_model_without_prediction_says_so(real_bench: Bench) -> None:
    result = neurons.run(Neurons(model="minilm", layer=2), real_bench)
    assert result.notes == ["This model predicts no next token: there is nothing to push towards."]
    assert "pushes towards" not in result.facts["loudest"][0]
    with pytest.raises(InputError, match="order the neurons by what they write"):
        neurons.run(Neurons(model="minilm", layer=2, by="the prediction"), real_bench)


def test_the_expansion_is_the_models(real_bench: Bench) -> None:
    assert neurons.run(Neurons(model="minilm", layer=0), real_bench).facts["expansion"] == 4
    facts = neurons.run(Neurons(), real_bench).facts
    assert (facts["width"], facts["hidden"], facts["gated"]) == (576, 1536, True)


def test_sparsity_is_counted(real_bench: Bench) -> None:
    ran = run_text(real_bench, "smollm2", "The capital of France is", record=("ffn_act",))
    own = ran.trace.kept["ffn_act"]["decoder", 24][-1].abs()
    facts = neurons.run(Neurons(), real_bench).facts
    assert facts["quiet"] == pytest.approx(float((own < own.max() / 100).float().mean()), abs=1e-3)
    writes = (own * ran.loaded.transformer.stack.blocks[24].ffn.down.weight.norm(dim=0)).sort(descending=True)
    kept = writes.values[: facts["few"]].sum() / writes.values.sum()
    assert 0.9 <= float(kept) < 0.902


@pytest.mark.parametrize(("changes", "said"), [
    ({"token": 5}, "There is no token 5: this text has tokens 0 to 4"),
    ({"token": -6}, "There is no token -6"),
    ({"layer": 30}, "There is no layer 30: this model has layers 0 to 29"),
])  # fmt: skip
def test_what_there_is_not_is_refused(real_bench: Bench, changes: dict[str, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        neurons.run(Neurons(**changes), real_bench)  # type: ignore[arg-type]


def test_nothing_is_drawn_twice(real_bench: Bench) -> None:
    ranked = neurons.run(Neurons(), real_bench).series[0]
    places = list(ranked.lines[0].x)
    assert places[0] == 1
    assert places[-1] == 1536
    assert places == sorted(set(places))
    assert torch.all(ranked.lines[0].y[1:] <= ranked.lines[0].y[:-1])


def _failing(bench: Bench, **given: object) -> set[str]:
    result = neurons.run(Neurons.model_validate(given), bench)
    return {check.name.split(":")[0] for check in result.checks if not check.holds}


LENGTH = "length of what a neuron writes = that of the neuron run alone"


@pytest.mark.parametrize("by", ["what they write", "the prediction"])
def test_every_check_holds(real_bench: Bench, by: str) -> None:
    assert _failing(real_bench, by=by, layer=3, token=1) == set()
    assert len(neurons.run(Neurons(), real_bench).checks) == 6
    assert len(neurons.run(Neurons(model="minilm", layer=2), real_bench).checks) == 3


def test_lengths_without_the_matrix_are_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = neurons._layer

    def bare(ran: neurons.Ran, parameters: Neurons) -> neurons.Layer:
        layer = own(ran, parameters)
        return replace(layer, writes=layer.own.abs())

    monkeypatch.setattr(neurons, "_layer", bare)
    assert _failing(real_bench) == {LENGTH}
    assert _failing(real_bench, model="minilm", layer=2) == {LENGTH}


def test_words_that_are_none_of_the_heads_are_seen(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = neurons._pushed
    monkeypatch.setattr(neurons, "_pushed", lambda loaded, write: own(loaded, write).roll(1))  # type: ignore[union-attr]
    assert _failing(real_bench) == {
        "words in the table that the model's own head does not raise or lower most"
    }


@pytest.mark.parametrize("factor", [-3.0, 0.9])
def test_shares_that_are_none_of_the_heads_are_seen(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    own = neurons._to_prediction
    monkeypatch.setattr(neurons, "_to_prediction", lambda ran, layer: factor * own(ran, layer))  # type: ignore[operator]
    assert _failing(real_bench) == {
        "shares of the prediction in the table = by the model's own head, largest difference",
        "all neurons together add to the prediction, by the model's own head",
    }
