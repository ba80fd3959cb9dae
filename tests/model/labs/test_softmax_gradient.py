import numpy as np
import pytest
import torch

from model.labs import query_gradient, softmax_gradient
from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxGradient
from model.labs.query_gradient import by_autograd, draw, norms, shown_by_autograd
from model.labs.result import Chart, Result
from model.labs.softmax_gradient import run, spread_of


def _run(**given: object) -> Result:
    return run(SoftmaxGradient.model_validate(given), Bench())


def _loss(q: np.ndarray, keys: np.ndarray, upstream: np.ndarray, factor: float) -> float:
    weights = np.exp(factor * keys @ q)
    return float(upstream @ weights / weights.sum())


def test_autograd_agrees_with_finite_differences():
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
    found = by_autograd(*map(torch.from_numpy, (q, keys, upstream)), 0.7)
    np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-8)


@pytest.mark.parametrize(("d_k", "factor"), [(1, 1.0), (2, 0.7), (7, 1.0), (64, 0.125), (64, 1.0)])
def test_norms_are_those_of_keys_drawn_in_full(d_k, factor):
    """Against autograd on other rows, whose q and keys are drawn component by component."""
    generator = torch.Generator().manual_seed(21)
    shapes = [(d_k,), (16, d_k), (16,)]
    q, keys, upstream = (
        torch.randn(4000, *shape, generator=generator, dtype=torch.float64) for shape in shapes
    )
    full = by_autograd(q, keys, upstream, factor).norm(dim=-1).sort().values
    drawn = norms(draw(SoftmaxGradient(d_k=d_k, keys=16, rows=4000)), d_k, factor).sort().values
    below = torch.searchsorted(drawn, full) / 4000
    # Kolmogorov and Smirnov: of two samples of 4000, beyond 0.0436 once in a thousand.
    assert (below - torch.arange(4000) / 4000).abs().max() < 0.0436


def test_medians_of_many_rows_do_not_hang_on_the_seed():
    """At 64 over 64 keys the median of 60,000 rows is 0.83; its standard error over 1000 is 0.06."""
    for seed in range(5):
        facts = _run(seed=seed).facts
        assert facts["unscaled"]["median"] == pytest.approx(0.83, abs=0.2)
        assert facts["scaled"]["median"] == pytest.approx(0.168, abs=0.006)
        assert facts["peak"] in (16, 32, 64)
        assert facts["smaller_from"] in (256, 512, 1024)
        assert facts["same_from"] in (4, 8, 16)


def test_the_standard_error_is_how_far_medians_of_seeds_lie_apart():
    found = [_run(seed=seed).facts["unscaled"] for seed in range(20)]
    apart = np.std([one["median"] for one in found])
    assert np.mean([one["error"] for one in found]) == pytest.approx(apart, rel=0.5)


def test_spread_of_known_numbers():
    """Of 0 … 100 the ranks one sigma from the middle are 45 and 55."""
    found = spread_of(torch.arange(101, dtype=torch.float64).flip(0))
    assert (found.low, found.median, found.high, found.error) == (25, 50, 75, 5)


def test_the_unscaled_gradient_dies_and_the_scaled_one_does_not():
    facts = _run(d_k=16_384).facts
    assert facts["unscaled"]["median"] < 1e-10
    assert facts["scaled"]["median"] == pytest.approx(0.17, abs=0.006)
    # Of nearly uniform weights p ⊙ (g - p·g) has the length √(keys - 1) / keys, and χ of d_k is √d_k.
    assert facts["inverse"]["median"] == pytest.approx(63**0.5 / 64 / 128, rel=0.03)


def test_in_narrow_heads_the_unscaled_gradient_is_the_larger_one():
    """The picture of textbooks, vanishing at once, is not what is measured: it peaks first."""
    facts = _run(d_k=16).facts
    assert facts["unscaled"]["median"] > 2 * facts["scaled"]["median"]


def test_the_narrowest_heads_are_not_the_same_under_the_rule():
    facts = _run(d_k=1).facts
    assert facts["scaled"]["median"] == facts["unscaled"]["median"] == pytest.approx(0.105, abs=0.015)


def test_a_width_of_ones_own_leaves_the_others_as_they_are():
    with_own, without = _run(d_k=100).series[0], _run(d_k=64).series[0]
    assert isinstance(with_own, Chart)
    assert isinstance(without, Chart)
    line = with_own.lines[1]
    rest = [y for x, y in zip(line.x, line.y, strict=True) if x != 100]
    assert rest == without.lines[1].y
    assert len(line.y) == len(rest) + 1
    for low, median, high in zip(line.low or [], line.y, line.high or [], strict=True):
        assert low < median < high


@pytest.mark.parametrize(
    ("given", "checks"),
    [
        ({}, 4),
        ({"d_k": 1, "rule": "own", "factor": 100.0}, 5),
        ({"rows": 100, "keys": 2}, 4),
        ({"d_k": 7, "seed": 5}, 4),
        ({"d_k": 16_384}, 3),
    ],
)
def test_medians_are_those_of_autograd_and_of_keys_drawn_in_full(given, checks):
    result = _run(**given)
    assert [check.holds for check in result.checks] == [True] * checks
    assert any("left out" in note and "drawn in full" in note for note in result.notes) == (checks == 3)


@pytest.mark.parametrize("wrong", [lambda found: 3 * found, torch.ones_like])
def test_gradients_that_are_wrong_are_noticed(monkeypatch, wrong):
    monkeypatch.setattr(softmax_gradient, "norms", lambda *given: wrong(norms(*given)))
    assert [check.holds for check in _run(rule="inv_sqrt").checks] == [False] * 4


def test_a_wrong_length_across_the_query_is_noticed_by_keys_drawn_in_full(monkeypatch):
    chi_squares = query_gradient._chi_squares
    monkeypatch.setattr(
        query_gradient,
        "_chi_squares",
        lambda *given: {freedom: total / 9 for freedom, total in chi_squares(*given).items()},
    )
    *_, full = _run(rule="inv_sqrt").checks
    assert "drawn in full" in full.name
    assert not full.holds


def test_a_saturated_row_keeps_its_digits_in_both_ways():
    drawn = draw(SoftmaxGradient(d_k=16_384))
    torch.testing.assert_close(
        norms(drawn, 16_384, 1.0), shown_by_autograd(drawn, 16_384, 1.0), rtol=1e-9, atol=0
    )


def test_what_is_too_small_for_the_axis_is_left_out_and_said():
    (chart,), notes = _run(rule="own", factor=100.0, rows=100).series, _run().notes
    assert isinstance(chart, Chart)
    values = [value for line in chart.lines for value in [*line.y, *(line.low or []), *(line.high or [])]]
    assert None in values
    assert min(value for value in values if value is not None) == 1e-6
    assert any("ends at 1.0 · 10⁻⁶" in note for note in notes)
