import numpy as np
import pytest
import torch

from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxGradient
from model.labs.result import Result
from model.labs.softmax_gradient import by_autograd, by_formula, run


def _run(**given: object) -> Result:
    return run(SoftmaxGradient.model_validate(given), Bench())


def _loss(q: np.ndarray, keys: np.ndarray, upstream: np.ndarray, factor: float) -> float:
    weights = np.exp(factor * keys @ q)
    return float(upstream @ weights / weights.sum())


def test_both_ways_agree_with_finite_differences():
    random = np.random.default_rng(4)
    q, keys, upstream = random.normal(size=(1, 6)), random.normal(size=(1, 5, 6)), random.normal(size=(1, 5))
    step = 1e-6
    expected = [
        (
            _loss(q[0] + step * unit, keys[0], upstream[0], 0.7)
            - _loss(q[0] - step * unit, keys[0], upstream[0], 0.7)
        )
        / (2 * step)
        for unit in np.eye(6)
    ]
    for way in (by_autograd, by_formula):
        found = way(*map(torch.from_numpy, (q, keys, upstream)), 0.7)
        np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-8)


def test_the_unscaled_gradient_dies_and_the_scaled_one_does_not():
    facts = _run(d_k=16_384).facts
    assert facts["unscaled"] < 1e-6
    assert 0.05 < facts["scaled"] < 0.5
    # 1/d_k shrinks it by another √d_k: neither dies by saturation, but it becomes small.
    assert facts["inverse"] == pytest.approx(facts["scaled"] / 128, rel=0.5)


def test_in_narrow_heads_the_unscaled_gradient_is_the_larger_one():
    """The picture of textbooks, vanishing at once, is not what is measured: it peaks first."""
    facts = _run(d_k=16).facts
    assert facts["unscaled"] > 2 * facts["scaled"]
    assert 256 <= facts["smaller_from"] <= 2048


@pytest.mark.parametrize(
    "given", [{}, {"d_k": 1, "rule": "own", "factor": 100.0}, {"rows": 32, "keys": 2}, {"d_k": 7}]
)
def test_autograd_and_formula_agree(given):
    result = _run(**given)
    assert [check.holds for check in result.checks] == [True]


def test_without_gradient_nothing_is_drawn_on_the_log_axis():
    result = _run(rule="own", factor=100.0, rows=4)
    values = [value for line in result.series[0].lines for value in line.y]
    assert None in values
    assert 0 not in values
    assert "gap" in result.notes[0]
