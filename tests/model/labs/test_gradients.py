"""Gradients against distance: against Jacobians that are computed otherwise, and against what theory says."""

import math
from typing import Any

import pytest
import torch
from torch.autograd.functional import jacobian

from model.errors import InputError
from model.labs import gradients
from model.labs.bench import Bench, Cancelled
from model.labs.gradients import SHOWN, run, started_net
from model.labs.jacobians import by_distance, by_products, shared_evenly
from model.labs.nets import Net, build, inputs
from model.labs.parameters.recurrence import Gradients


@pytest.mark.parametrize("net", SHOWN)
def test_norms_are_those_of_the_whole_jacobian(net: Net) -> None:
    module, x = build(net, 8, seed=2), inputs(1, 7, 8, seed=3)
    whole = jacobian(lambda given: module(given)[0, -1], x)[:, 0]  # [D, T, D]
    expected = whole.pow(2).sum(dim=(0, 2)).sqrt().flip(0)
    assert torch.allclose(by_distance(module, x), expected, rtol=1e-10)


def test_the_product_of_jacobians_agrees() -> None:
    module, x = build("RNN", 8, seed=2), inputs(1, 30, 8, seed=3)
    assert torch.allclose(by_products(module, x), by_distance(module, x), rtol=1e-9)


def test_a_recurrent_gradient_dies_by_a_factor_and_attention_keeps_its_own() -> None:
    found = run(Gradients(distance=40, seeds=3), Bench())
    assert [check.name for check in found.checks if not check.holds] == []
    kept, factor = found.facts["kept"], found.facts["factor"]
    # W_hh of U(±1/√D) has variance 1/(3D): without the bend of tanh a step would multiply by 1/√3.
    assert factor["rnn"] < 1 / math.sqrt(3)  # type: ignore[index]
    assert kept["rnn"] < 1e-9 < kept["attention"]  # type: ignore[index]
    assert factor["attention"] == pytest.approx(1, abs=0.02)  # type: ignore[index]


@pytest.mark.parametrize(("gain", "shrinks"), [(1.0, True), (4.0, False)])
def test_the_gain_turns_vanishing_into_exploding(gain: float, shrinks: bool) -> None:
    found = run(Gradients(distance=30, gain=gain, width=64, seeds=3), Bench())
    assert (found.facts["factor"]["rnn"] < 1) == shrinks  # type: ignore[index]


def test_a_gate_that_keeps_lets_the_gradient_through() -> None:
    kept = [run(Gradients(keep_bias=bias, seeds=2), Bench()).facts["kept"] for bias in (0.0, 4.0)]
    for net in ("lstm", "gru"):
        assert kept[1][net] > 1e4 * kept[0][net]  # type: ignore[index]
    assert kept[1]["rnn"] == kept[0]["rnn"]  # type: ignore[index]


def test_gates_and_gain_change_only_what_they_name() -> None:
    plain = dict(started_net("LSTM", Gradients(width=8), 1).named_parameters())
    changed = dict(started_net("LSTM", Gradients(width=8, gain=2, keep_bias=3), 1).named_parameters())
    assert torch.equal(changed["layer.weight_hh_l0"], 2 * plain["layer.weight_hh_l0"])
    gate = (changed["layer.bias_hh_l0"] - plain["layer.bias_hh_l0"]).view(4, 8)
    assert torch.allclose(gate.mean(dim=1), torch.tensor([0.0, 3.0, 0.0, 0.0], dtype=torch.float64))
    assert torch.equal(changed["layer.weight_ih_l0"], plain["layer.weight_ih_l0"])


def test_attention_that_looks_everywhere_alike_shares_evenly() -> None:
    module, x = build("self-attention", 16, seed=0), inputs(1, 9, 16, seed=1)
    with torch.no_grad():
        for name in ("q.weight", "q.bias", "k.weight", "k.bias"):
            module.get_parameter(name).zero_()
    expected = torch.full((9,), shared_evenly(module, 9), dtype=torch.float64)
    assert torch.allclose(by_distance(module, x), expected)


def test_the_shortest_distance_and_underflow() -> None:
    assert all(check.holds for check in run(Gradients(distance=1), Bench()).checks)
    found = run(Gradients(distance=400, gain=0.1, seeds=1, width=8), Bench())
    assert found.facts["kept"]["rnn"] == 0  # type: ignore[index]
    assert any("too small for float64" in note for note in found.notes)


def test_what_would_take_long_is_refused_and_who_leaves_stops_it() -> None:
    with pytest.raises(InputError, match="fewer"):
        run(Gradients(distance=400, width=64, seeds=20), Bench())

    def leave(*_: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        run(Gradients(), Bench(report=leave))


@pytest.mark.parametrize("net", SHOWN)
def test_a_gradient_that_is_off_by_a_percent_is_seen(monkeypatch: pytest.MonkeyPatch, net: Net) -> None:
    right = gradients.by_distance
    built: list[object] = []

    def wrong(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        built.append(module)
        return right(module, x) * (1.01 if SHOWN[(len(built) - 1) % 4] == net else 1)

    monkeypatch.setattr(gradients, "by_distance", wrong)
    failing = [
        check.name for check in run(Gradients(distance=10, seeds=1), Bench()).checks if not check.holds
    ]
    assert [name.split(":")[0] for name in failing] == [net]


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_a_factor_that_theory_does_not_have_is_seen(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    right = gradients.mean_field
    wrong = lambda net, x, norms: right(net, x, norms) * factor ** torch.arange(len(norms))  # noqa: E731
    monkeypatch.setattr(gradients, "mean_field", wrong)
    failing = [check.name for check in run(Gradients(), Bench()).checks if not check.holds]
    assert failing == ["RNN: log₁₀ of the factor a step"]


@pytest.mark.parametrize("factor", [0.75, 1.3])
def test_a_level_that_theory_does_not_have_is_seen(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    monkeypatch.setattr(gradients, "shared_evenly", lambda net, length: factor * shared_evenly(net, length))
    failing = [check.name for check in run(Gradients(), Bench()).checks if not check.holds]
    assert failing == ["self-attention: mean norm from distance 1 on, ‖W_O W_V‖ / n"]


@pytest.mark.parametrize("given", [
    {"width": 8, "distance": 1, "seeds": 1},
    {"width": 8, "distance": 2, "seeds": 1},
    {"gain": 4.0, "seeds": 3},
    {"gain": 0.1, "distance": 100, "seeds": 1},
    {"keep_bias": 5.0, "seeds": 2},
    {"width": 64, "distance": 120, "seeds": 1},
])  # fmt: skip
def test_what_is_right_holds(given: dict[str, Any]) -> None:
    for seed in (0, 11, 2**32 - 1):
        found = run(Gradients.model_validate({**given, "seed": seed}), Bench())
        assert [check for check in found.checks if not check.holds] == []


def test_more_nets_make_the_tolerance_narrower() -> None:
    one, many = (run(Gradients(distance=5, width=8, seeds=seeds), Bench()).checks[-2:] for seeds in (1, 12))
    for wide, narrow in zip(one, many, strict=True):
        assert narrow.tolerance < wide.tolerance


def test_a_few_bent_numbers_are_not_judged() -> None:
    found = run(Gradients(width=8, gain=4.0, seeds=1), Bench())
    assert not any("factor" in check.name for check in found.checks)
    assert any("not judged" in note for note in found.notes)


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_inputs_have_nothing_to_do_with_the_weights_of_the_same_seed(seed: int) -> None:
    weights = next(build("RNN", 32, seed).parameters()).detach().flatten()  # [1024]
    x = inputs(1, 32, 32, seed).flatten()  # [1024]
    correlation = torch.corrcoef(torch.stack((weights, x)))[0, 1].item()
    assert abs(correlation) < 5 / 32
