"""ALiBi's slopes against powers of two, its weights against a geometric series."""

from typing import Any

import numpy as np
import pytest
import torch

from model.errors import InputError
from model.labs import alibi
from model.labs.alibi import published_slopes, run
from model.labs.bench import Bench
from model.labs.parameters.alibi import AlibiLab
from model.labs.result import Chart, Heatmap, Result


def _slopes(result: Result) -> list[float]:
    chart = result.series[0]
    assert isinstance(chart, Chart)
    return list(chart.lines[0].y)  # type: ignore[arg-type]


def test_slopes_of_eight_heads_are_exact_halves() -> None:
    result = run(AlibiLab(heads=8), Bench())
    assert _slopes(result) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert all(check.holds for check in result.checks)
    assert all(check.tolerance == 0 for check in result.checks if check.about == "slopes")


def test_twelve_heads_take_the_slopes_of_eight_and_every_other_of_sixteen() -> None:
    slopes = _slopes(run(AlibiLab(heads=12), Bench()))
    assert slopes == [2.0**-i for i in range(1, 9)] + [2 ** (-i / 2) for i in (1, 3, 5, 7)]


@pytest.mark.parametrize("heads", [1, 2, 3, 16, 100, 128])
@pytest.mark.parametrize("length", [1, 200])
def test_every_check_holds(heads: int, length: int) -> None:
    result = run(AlibiLab(heads=heads, head=heads - 1, length=length), Bench())
    assert [check.name for check in result.checks if not check.holds] == []
    assert len(published_slopes(heads)) == heads


def test_weights_are_what_numpy_makes_of_the_bias() -> None:
    result = run(AlibiLab(heads=8, head=2, length=40), Bench())
    chart = result.series[2]
    assert isinstance(chart, Chart)
    expected = np.exp(-np.arange(40) / 8)
    found = torch.as_tensor(chart.lines[0].y).numpy()
    assert np.allclose(found, expected / expected.sum(), atol=1e-12)


def test_the_bias_is_minus_slope_times_distance_and_nothing_ahead() -> None:
    matrix = run(AlibiLab(heads=8, head=0, length=5), Bench()).series[1]
    assert isinstance(matrix, Heatmap)
    values = matrix.values.numpy()
    assert values[4, 0] == -2.0
    assert np.isnan(values[0, 1:]).all()


def test_wrong_slopes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alibi, "alibi_slopes", lambda heads: tuple(2.0**-i for i in range(heads)))
    assert sum(not check.holds for check in run(AlibiLab(), Bench()).checks) >= 3


@pytest.mark.parametrize("head", [4, 9])
def test_a_head_that_there_is_not_is_refused(head: int) -> None:
    with pytest.raises(InputError, match=f"no head {head} among 4 heads: choose one from 0 to 3"):
        run(AlibiLab(heads=4, head=head), Bench())


def test_weights_too_small_for_a_number_are_said() -> None:
    result = run(AlibiLab(heads=8, head=0, length=2048), Bench())
    assert result.facts["farthest_weight"] == 0
    # 2 · ln 2^-1075 below the weight of 1 - e^(-1/2), which is e^-0.93.
    assert result.notes[0].startswith("From distance 1489 on the weights of head 0 are smaller than")
    assert all(check.holds for check in result.checks)


def test_a_far_weight_that_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = alibi.attention

    def wrong(*given: Any, **more: Any) -> torch.Tensor:
        weights = real(*given, **more)
        weights[..., 0] *= 1.01
        return weights

    monkeypatch.setattr(alibi, "attention", wrong)
    assert [check.about for check in run(AlibiLab(), Bench()).checks if not check.holds] == ["weights"]
