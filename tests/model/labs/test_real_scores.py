import math
from typing import Any

import numpy as np
import pytest
import torch

from model.errors import InputError
from model.inputs import Inputs
from model.labs import real_scores
from model.labs.bench import Bench
from model.labs.head_scores import Heads
from model.labs.one_head import Where
from model.labs.parameters.scaling import PASSAGE, RealScores
from model.labs.real_scores import run
from model.labs.result import Chart, Heatmap, Result, Series
from model.plan import Plan

pytestmark = pytest.mark.weights


@pytest.fixture
def bench(real_bench: Bench) -> Bench:
    return real_bench


def _series(result: Result, name: str) -> Series:
    (found,) = [one for one in result.series if one.id == name]
    return found


def _chart(result: Result, name: str) -> Chart:
    found = _series(result, name)
    assert isinstance(found, Chart)
    return found


@pytest.mark.parametrize(
    ("model", "layer", "head", "rule", "factor"),
    [("minilm", 4, 7, "own", 32**-0.5), ("minilm", 0, 0, "none", 1), ("smollm2", 20, 5, "inv", 1 / 64)],
)
def test_spread_and_entropy_are_what_numpy_finds_row_by_row(bench, model, layer, head, rule, factor):
    result = run(RealScores(model=model, layer=layer, head=head, rule=rule), bench)
    loaded = bench.model(model)
    ids = loaded.encoder.encode(PASSAGE, None).ids
    plan = Plan.parse([{"kind": "set_scale", "rule": rule}])
    site = list(loaded.transformer.trace(Inputs.of(ids), plan).sites.values())[layer]
    q, k = site.q[head].double().numpy(), site.k[head * len(site.k) // len(site.q)].double().numpy()
    variances, shares, largest = [], [], []
    for i in range(len(ids)):
        row = k[: i + 1 if model == "smollm2" else None] @ q[i]
        if len(row) == 1:
            continue
        variances.append(row.var())
        weights = np.exp(factor * (row - row.max()))
        weights /= weights.sum()
        shares.append(-(weights * np.log(np.maximum(weights, 1e-300))).sum() / math.log(len(row)))
        largest.append(weights.max())
    spread = math.sqrt(np.mean(variances))
    facts = result.facts
    assert facts["raw_spread"] == pytest.approx(spread, rel=1e-4)
    assert facts["scaled_spread"] == pytest.approx(spread * factor, rel=1e-4)
    (check,) = [
        one
        for one in result.checks
        if one.name == f"scaled spread of L{layer}H{head}, row by row from q and k"
    ]
    assert (check.measured, check.expected) == (pytest.approx(spread * factor, rel=1e-4),) * 2
    assert facts["entropy"] == pytest.approx(np.mean(shares), abs=1e-4)
    assert facts["largest"] == pytest.approx(np.mean(largest), abs=1e-4)
    matrix = _series(result, "spread")
    assert isinstance(matrix, Heatmap)
    assert matrix.values[layer, head].item() == pytest.approx(spread, rel=1e-4)


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_unscaled_heads_saturate_and_the_model_is_another(bench, model):
    own, unscaled = run(RealScores(model=model), bench), run(RealScores(model=model, rule="none"), bench)
    assert own.facts["moved"] == 0
    assert own.facts["all_entropy"] == own.facts["all_own_entropy"]
    assert unscaled.facts["all_entropy"] < 0.5 * own.facts["all_entropy"]
    assert unscaled.facts["all_largest"] > 0.8
    assert unscaled.facts["moved"] > 0.3
    for result in (own, unscaled):
        assert [check.name for check in result.checks if not check.holds] == []


def test_temperature_goes_from_uniform_to_one_key(bench):
    entropy, largest, jacobian = _chart(run(RealScores(layer=2, head=3), bench), "temperature").lines
    assert entropy.y[0] > 0.99
    assert entropy.y[-1] < 0.2
    assert largest.y[-1] > 0.8
    assert jacobian.y[-1] < 1e-3
    assert all(after <= before for before, after in zip(entropy.y, entropy.y[1:], strict=False))


def test_times_is_the_temperature_of_the_chart(bench):
    """In layer 0 q and k are the same under any scale: the run with times 10 is the chart's point at 10."""
    entropy, largest, _ = _chart(run(RealScores(), bench), "temperature").lines
    place = list(entropy.x).index(10.0)
    hot = run(RealScores(times=10.0), bench).facts
    assert hot["entropy"] == pytest.approx(entropy.y[place], abs=1e-4)
    assert hot["largest"] == pytest.approx(largest.y[place], abs=1e-4)


def test_every_head_sits_on_the_picture_and_the_curve_falls(bench):
    heads, chosen, curve = _chart(
        run(RealScores(model="smollm2", layer=3, head=2), bench), "saturation"
    ).lines
    assert len(torch.as_tensor(heads.y)) == 270
    assert torch.as_tensor(heads.y)[3 * 9 + 2].item() == pytest.approx(chosen.y[0])
    assert curve.origin == "theory"
    assert curve.y[0] > 0.99
    assert curve.y[-1] < 0.05


def test_histograms_hold_every_pair_once(bench):
    for line in _chart(run(RealScores(model="smollm2"), bench), "scores").lines:
        assert float(torch.as_tensor(line.y).sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layer": 6}, "no layer 6"),
        ({"text": "word " * 300}, "302 tokens"),
        ({"model": "smollm2", "text": "Hi"}, "1 token,"),
    ],
)
def test_what_cannot_be_measured_is_said(bench, given, said):
    with pytest.raises(InputError, match=said):
        run(RealScores.model_validate(given), bench)


def test_the_weights_of_two_tokens_answer_most_where_they_are_even(bench):
    """Of p and 1 - p it is 2p(1 - p), largest where weights are even: at the smallest factor."""
    facts = run(RealScores(model="smollm2", text="Hi there", layer=3), bench).facts
    assert facts["answers_most_at"] == pytest.approx(0.01)


def _failed(bench: Bench, **given: object) -> set[str | None]:
    parameters = RealScores.model_validate({"model": "smollm2", "layer": 4, "head": 7, **given})
    return {check.about for check in run(parameters, bench).checks if not check.holds}


@pytest.mark.parametrize("wrong", [lambda values: 3 * values, lambda values: values.flip(0, 1)])
def test_matrices_that_are_wrong_are_noticed(bench, monkeypatch, wrong):
    measure = real_scores.measure

    def broken(*given: Any) -> Heads:
        return Heads(*(wrong(values) for values in vars(measure(*given)).values()))

    assert _failed(bench) == set()
    monkeypatch.setattr(real_scores, "measure", broken)
    assert _failed(bench) == {"spread", "scaled_spread", "saturation"}


@pytest.mark.parametrize(("name", "about"), [("_histogram", "scores"), ("multiplied", "temperature")])
def test_another_head_than_the_chosen_one_is_noticed(bench, monkeypatch, name, about):
    right = getattr(real_scores, name)
    monkeypatch.setattr(real_scores, name, lambda first, _, *more: right(first, Where(4, 2), *more))
    assert _failed(bench) == {about}
