import math

import numpy as np
import pytest
import torch

from model.errors import InputError
from model.labs import scaling
from model.labs.bench import Bench, Cancelled
from model.labs.parameters.scaling import Scaling
from model.labs.result import Chart, Result
from model.labs.scaling import run, variance_ratios
from model.labs.score_distribution import exact, gap, normal


def _run(**given: object) -> Result:
    return run(Scaling.model_validate(given), Bench())


def _check(result: Result, name: str) -> float:
    (check,) = [one for one in result.checks if one.name == name]
    assert check.holds
    return check.measured


@pytest.mark.parametrize("d_k", [1, 2, 7, 64, 1024])
def test_variance_is_the_width_within_sampling_error(d_k):
    """Var(q·k) = d_k; the variance of a sample variance is d_k² (2 + 6 / d_k) / n."""
    result = _run(d_k=d_k)
    error = d_k * math.sqrt((2 + 6 / d_k) / 20_000)
    assert _check(result, "variance of q·k") == pytest.approx(d_k, abs=5 * error)
    assert _check(result, "variance after the rule") == pytest.approx(1, abs=5 * error / d_k)
    assert all(check.holds for check in result.checks)


@pytest.mark.parametrize(
    ("rule", "factor", "expected"),
    [("none", 3.0, 64), ("inv_sqrt", 3.0, 1), ("inv", 3.0, 1 / 64), ("own", 0.5, 16)],
)
def test_rules_multiply_the_variance_by_their_square(rule, factor, expected):
    result = _run(rule=rule, factor=factor)
    assert _check(result, "variance after the rule") == pytest.approx(expected, rel=0.06)
    assert _check(result, "variance of q·k") == pytest.approx(64, rel=0.06)


def test_the_exact_distribution_of_two_products_is_laplace():
    x = np.linspace(-6, 6, 25)
    laplace = np.where(x < 0, 0.5 * np.exp(x), 1 - 0.5 * np.exp(-x))
    np.testing.assert_allclose(exact(torch.from_numpy(x), 2).numpy(), laplace, atol=2e-6)


@pytest.mark.parametrize("d_k", [1, 3, 16, 4096])
def test_the_exact_distribution_is_that_of_numpy_draws(d_k):
    random = np.random.default_rng(5)
    scores = np.concatenate(
        [(random.normal(size=(500, d_k)) * random.normal(size=(500, d_k))).sum(1) for _ in range(20)]
    )
    points = torch.linspace(-3, 3, 61, dtype=torch.float64) * math.sqrt(d_k)
    assert gap(torch.from_numpy(scores), points, exact(points, d_k)) < 0.025


def test_one_product_is_not_normal_and_the_lab_says_so():
    result = _run(d_k=1)
    assert result.facts["gap_normal"] == pytest.approx(0.1, abs=0.02)
    assert result.facts["gap_exact"] < 0.0177
    assert "not normal" in result.notes[0]
    assert _run(d_k=4096, samples=2000).notes == []


def test_normal_distribution_by_known_values():
    points = torch.tensor([-8.0, 0.0, 8.0], dtype=torch.float64)
    np.testing.assert_allclose(normal(points, 64).numpy(), [0.158655254, 0.5, 0.841344746], atol=1e-9)


def test_every_sample_lies_in_the_histogram():
    (chart,) = _run(d_k=3, samples=777).series
    assert isinstance(chart, Chart)
    measured, as_normal, as_exact = chart.lines
    x = torch.as_tensor(measured.x)
    width = float(x[1] - x[0])
    counts = torch.as_tensor(measured.y) * width * 777
    torch.testing.assert_close(counts, counts.round(), atol=1e-6, rtol=0)
    assert float(counts.sum()) == pytest.approx(777)
    for theory in (as_normal, as_exact):
        assert float(torch.as_tensor(theory.y).sum() * width) == pytest.approx(1, abs=0.01)


def test_samples_are_drawn_in_full_chunk_by_chunk():
    heard: list[tuple[float, str, Result | None]] = []
    bench = Bench(report=lambda fraction, words, so_far: heard.append((fraction, words, so_far)))
    result = run(Scaling(d_k=8192, samples=2000), bench)
    assert result.facts["samples"] == 2000
    assert [words for _, words, _ in heard][-1] == "2,000 of 2,000 pairs drawn"
    assert len(heard) > 3
    first = heard[0][2]
    assert first is not None
    assert first.facts["samples"] == 488
    assert first.facts["variance"] != result.facts["variance"]


def test_whoever_leaves_stops_it():
    def leave(_fraction: float, _words: str, _so_far: Result | None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        run(Scaling(), Bench(report=leave))


def test_a_seed_repeats_its_numbers_and_another_does_not():
    assert _run(seed=3).as_json() == _run(seed=3).as_json()
    assert _run(seed=3).facts["variance"] != _run(seed=4).facts["variance"]


def test_what_would_take_minutes_is_refused_with_what_would_not():
    with pytest.raises(InputError, match=r"65,536.*choose at most 5,035 samples") as refused:
        _run(d_k=65_536, samples=200_000)
    assert "200,000" in str(refused.value)


def test_the_widest_head_answers():
    result = _run(d_k=65_536, samples=60)
    assert _check(result, "variance of q·k") == pytest.approx(65_536, rel=1)
    assert "60 samples" in result.notes[-1]


def test_variance_ratios_are_quantiles_of_chi_squared():
    """Of 9 degrees of freedom, by series: P(χ² < 0.1692) = 2.87e-7, five sigmas below."""
    low, _ = variance_ratios(10**9, 10)
    x = 9 * low / 2
    below = x**4.5 * math.exp(-x) * sum(x**n / math.gamma(5.5 + n) for n in range(20))
    assert below == pytest.approx(2.867e-7, rel=1e-3)


@pytest.mark.parametrize("d_k", [1, 2, 64])
@pytest.mark.parametrize("samples", [10, 20, 200])
def test_no_draw_of_few_samples_is_called_wrong(d_k, samples):
    random = np.random.default_rng(9)
    scores = np.einsum("nsk,nsk->ns", *random.normal(size=(2, 40_000 // samples, samples, d_k)))
    ratios = scores.var(axis=1, ddof=1) / d_k
    low, high = variance_ratios(d_k, samples)
    assert low < ratios.min()
    assert ratios.max() < high


@pytest.mark.parametrize("wrong", [0.1, 10.0])
@pytest.mark.parametrize("samples", [20, 100, 20_000])
def test_a_variance_far_too_small_or_large_is_noticed(monkeypatch, samples, wrong):
    """Both q and k are drawn with this variance, so that of their product has its square."""
    randn = torch.randn
    monkeypatch.setattr(
        scaling.torch, "randn", lambda *given, **more: math.sqrt(wrong) * randn(*given, **more)
    )
    failed = {check.name for check in _run(samples=samples).checks if not check.holds}
    assert any(name.startswith("variance of q·k") for name in failed)


def test_bars_that_do_not_show_the_scores_are_noticed(monkeypatch):
    histogram = scaling._histogram
    monkeypatch.setattr(scaling, "_histogram", lambda scaled, *more: histogram(1.1 * scaled, *more))
    (check,) = [one for one in _run().checks if one.name == "variance of the bars"]
    assert not check.holds
