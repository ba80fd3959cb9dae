import math
from typing import Any

import numpy as np
import pytest
import torch

from model.labs import softmax_saturation
from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxSaturation
from model.labs.result import Chart, Line, Result
from model.labs.softmax_measures import entropy, jacobian_norm, mean_largest, mean_norm
from model.labs.softmax_saturation import run


def _run(**given: object) -> Result:
    return run(SoftmaxSaturation.model_validate(given), Bench())


def _line(result: Result, chart: str, name: str) -> Line:
    (found,) = [one for one in result.series if one.id == chart]
    assert isinstance(found, Chart)
    (line,) = [one for one in found.lines if one.name == name]
    return line


# Measured once over 64 keys, of many more rows: entropy in nats and largest weight of unscaled scores.
@pytest.mark.parametrize(
    ("d_k", "nats", "weight"), [(16, 1.33, 0.59), (64, 0.59, 0.79), (256, 0.26, 0.90), (1024, 0.13, 0.95)]
)
def test_unscaled_rows_saturate_and_scaled_ones_do_not(d_k, nats, weight):
    facts = _run(d_k=d_k, rows=1000, seed=7).facts
    assert facts["unscaled"]["entropy"] == pytest.approx(nats, abs=0.08)
    assert facts["unscaled"]["largest_weight"] == pytest.approx(weight, abs=0.025)
    assert facts["scaled"]["entropy"] == pytest.approx(3.7, abs=0.05)
    assert facts["scaled"]["largest_weight"] == pytest.approx(0.11, abs=0.01)


def test_the_share_of_rows_without_gradient_is_what_was_measured():
    narrow, wide = _run(d_k=64, rows=1000).facts, _run(d_k=1024, rows=1000).facts
    assert narrow["unscaled"]["dead"] == pytest.approx(0.004, abs=0.008)
    assert wide["unscaled"]["dead"] == pytest.approx(0.32, abs=0.06)
    assert wide["unscaled"]["largest_score"] == pytest.approx(83, abs=2)
    assert wide["scaled"]["dead"] == 0


def test_textbook_sizes_come_where_they_come():
    """Unscaled, the largest |score| averages 2.6 √d_k: above 100 from d_k = 1483 on, and 2048 is drawn."""
    facts = _run(rows=1000).facts
    assert facts["hundred_from"] == 2048
    assert facts["half_dead_from"] == 4096


def test_under_the_rule_all_but_the_narrowest_heads_are_the_same():
    facts, narrow = _run(rows=1000).facts, _run(rows=1000, d_k=1).facts
    assert 2 <= facts["same_from"] <= 16
    assert narrow["scaled"]["largest_weight"] < 0.9 * facts["scaled"]["largest_weight"]
    assert _run(keys=1).facts["same_from"] == 1


@pytest.mark.parametrize("d_k", [1, 8, 64])
def test_rows_are_those_of_queries_and_keys_drawn_in_full(d_k):
    random = np.random.default_rng(11)
    q, keys = random.normal(size=(1500, d_k)), random.normal(size=(1500, 32, d_k))
    scores = np.einsum("nk,nsk->ns", q, keys)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    nats = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(1)
    error = 5 * math.sqrt(nats.var() / 1500 + nats.var() / 1000)
    facts = _run(d_k=d_k, keys=32, rows=1000, rule="none").facts
    assert facts["entropy"] == pytest.approx(nats.mean(), abs=error)
    error = 5 * weights.max(1).std() * math.sqrt(1 / 1500 + 1 / 1000)
    assert facts["largest_weight"] == pytest.approx(weights.max(1).mean(), abs=error)


def test_jacobian_norm_is_that_of_the_matrix():
    weights = torch.softmax(
        torch.randn(40, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3, -1
    )
    for row, norm in zip(weights.numpy(), jacobian_norm(weights).tolist(), strict=True):
        assert norm == pytest.approx(np.linalg.norm(np.diag(row) - np.outer(row, row)), rel=1e-12)


@pytest.mark.parametrize("small", [0.3, 1e-6, 1e-12, 1e-30])
def test_jacobian_norm_keeps_its_digits_when_a_row_is_saturated(small):
    """Of (1 - ε, ε) the Jacobian is ε(1 - ε)[[1, -1], [-1, 1]], of norm 2ε(1 - ε)."""
    row = torch.tensor([[1 - small, small]], dtype=torch.float64)
    assert jacobian_norm(row).item() == pytest.approx(2 * small * (1 - small), rel=1e-9, abs=0)


def test_entropy_of_known_rows():
    rows = torch.tensor([[1.0, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0]], dtype=torch.float64)
    np.testing.assert_allclose(entropy(rows).numpy(), [0, math.log(4), math.log(2)], atol=1e-15)


def test_mean_length_and_mean_largest_by_known_values():
    assert mean_norm(1) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-12)
    assert mean_norm(2) == pytest.approx(math.sqrt(math.pi / 2), rel=1e-12)
    assert mean_largest(1) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-6)
    drawn = np.abs(np.random.default_rng(2).normal(size=(20_000, 64))).max(1)
    assert mean_largest(64) == pytest.approx(drawn.mean(), abs=0.02)


def test_every_check_holds_for_every_rule_and_extreme():
    for given in (
        {"rule": "none"},
        {"rule": "inv"},
        {"rule": "own", "factor": 100.0},
        {"d_k": 1},
        {"keys": 1},
    ):
        result = _run(rows=200, **given)
        assert [check.name for check in result.checks if not check.holds] == []


def test_own_factor_is_drawn_only_where_it_is_chosen_and_does_what_it_says():
    own = _run(rule="own", factor=0.125, rows=300)
    here = _line(own, "entropy", "own factor")
    assert here.y[list(here.x).index(64)] == pytest.approx(own.facts["scaled"]["entropy"])
    assert [line.name for line in _run(rows=10).series[0].lines] == [
        *("1 (unscaled)", "1/√d_k", "1/d_k", "most possible: ln(keys)")
    ]


def test_a_width_of_ones_own_is_drawn_too():
    result = _run(d_k=100, rows=50)
    assert 100 in _line(result, "jacobian", "1/√d_k").x
    assert _run(d_k=65_536, rows=10, rule="none").facts["largest_weight"] > 0.95


def test_one_key_leaves_nothing_to_choose():
    result = _run(keys=1, rows=20)
    assert result.facts["entropy"] == 0
    assert result.facts["largest_weight"] == 1
    assert set(_line(result, "jacobian", "1/d_k").y) == {None}
    assert "one key" in result.notes[1]


@pytest.mark.parametrize("rule", ["none", "inv_sqrt"])
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("entropy", lambda value: value / 2),
        ("entropy", lambda value: value / math.log(2)),
        ("largest_weight", lambda value: value**2),
        ("largest_score", lambda value: 1.1 * value),
        ("jacobian", lambda value: 1.001 * value),
        ("dead", lambda value: value + 0.05),
    ],
)
def test_measures_that_are_wrong_are_noticed(monkeypatch, rule, name, wrong):
    measures = softmax_saturation._measures

    def broken(*given: Any) -> dict[str, float]:
        found = measures(*given)
        return {**found, name: wrong(found[name])}

    monkeypatch.setattr(softmax_saturation, "_measures", broken)
    assert [check.about for check in _run(rule=rule).checks if not check.holds] == [name]


def test_at_many_keys_some_whole_matrices_tell_a_wrong_jacobian(monkeypatch):
    monkeypatch.setattr(softmax_saturation, "jacobian_norm", lambda weights: 3 * jacobian_norm(weights))
    failed = [check for check in _run(keys=512, rows=100, rule="inv_sqrt").checks if not check.holds]
    assert [check.about for check in failed] == ["jacobian"]
    assert "64 rows" in failed[0].name


def test_checks_hold_whatever_the_seed():
    for seed in range(40):
        for given in ({}, {"rule": "inv_sqrt"}, {"d_k": 1024}):
            checks = _run(seed=seed, rows=20, keys=16, **given).checks
            assert [check.name for check in checks if not check.holds] == []
