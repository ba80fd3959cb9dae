"""Activations against values from elsewhere: Φ by Python's erf, known minima, differences of finite steps."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from model.labs import feed_forward
from model.labs.bench import Bench
from model.labs.parameters.feed_forward import Activations
from model.labs.result import Chart

BENCH = Bench()


def at(x: float) -> dict[str, dict[str, Any]]:
    table = feed_forward.run(Activations(at=x), BENCH).facts["table"]
    return {row["activation"]: row for row in table}  # type: ignore[attr-defined]


def test_values_at_a_point() -> None:
    found = at(-1.0)
    assert found["ReLU"]["f(x)"] == 0
    assert found["GELU"]["f(x)"] == pytest.approx(-0.15865525393145707, abs=1e-12)  # −Φ(−1)
    assert found["SiLU"]["f(x)"] == pytest.approx(-1 / (1 + math.e), abs=1e-12)
    assert found["GELU (tanh)"]["f(x)"] == pytest.approx(-0.158808, abs=1e-6)
    assert at(2.0)["ReLU"]["f(x)"] == 2


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.25, 2.0])
def test_slopes_are_differences_of_finite_steps(x: float) -> None:
    step = 1e-5
    before, here, after = at(x - step), at(x), at(x + step)
    for name, row in here.items():
        slope = (after[name]["f(x)"] - before[name]["f(x)"]) / (2 * step)
        assert row["f′(x) by autograd"] == pytest.approx(slope, abs=1e-8)


def test_the_lowest_points_are_the_known_ones() -> None:
    rows = feed_forward.run(Activations(), BENCH).facts["lowest"]
    lowest = {row["activation"]: row for row in rows}  # type: ignore[attr-defined]
    # x σ(x) is lowest where x = −1 − W(1/e), with W(1/e) = 0.27846 its depth.
    assert lowest["SiLU"]["lowest"] == pytest.approx(-0.2784645, abs=1e-6)
    assert lowest["SiLU"]["at x"] == pytest.approx(-1.2784645, abs=1e-4)
    assert lowest["GELU"]["lowest"] == pytest.approx(-0.16997, abs=1e-5)
    assert "ReLU" not in lowest


def test_checks_hold_and_a_wrong_formula_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(check.holds for check in feed_forward.run(Activations(), BENCH).checks)
    monkeypatch.setitem(feed_forward.CLOSED, "silu", lambda x: x.sigmoid())
    failed = [check.name for check in feed_forward.run(Activations(), BENCH).checks if not check.holds]
    assert len(failed) == 1
    assert failed[0].startswith("SiLU: derivative")


def test_curves_cover_what_was_asked() -> None:
    result = feed_forward.run(Activations(reach=0.5), BENCH)
    curves = next(one for one in result.series if isinstance(one, Chart) and one.id == "curves")
    relu = next(line for line in curves.lines if line.name == "ReLU")
    assert (relu.x[0], relu.x[-1]) == (-0.5, 0.5)
    assert np.allclose(relu.y.numpy(), np.maximum(relu.x.numpy(), 0))


def test_the_kink_and_the_ends_are_taken() -> None:
    for x in (0.0, 10.0, -10.0):
        assert all(check.holds for check in feed_forward.run(Activations(at=x, reach=10), BENCH).checks)
    with pytest.raises(ValidationError, match="less than or equal to 10"):
        Activations(at=10.5)


def test_the_point_of_the_table_is_marked_where_curves_reach_it() -> None:
    for at, marked in ((-1.0, True), (4.0, True), (5.0, False)):
        result = feed_forward.run(Activations(at=at), BENCH)
        for chart in result.series:
            assert isinstance(chart, Chart)
            marks = [line for line in chart.lines if line.name == f"at x = {at:g}"]
            assert len(marks) == marked
            if marked and chart.id == "curves":
                rows = result.facts["table"]
                assert list(marks[0].y) == [row["f(x)"] for row in rows]  # type: ignore[attr-defined]
        assert any("outside the curves" in note for note in result.notes) != marked


def test_gelu_can_be_seen_beside_its_tanh_form() -> None:
    chart = feed_forward.run(Activations(), BENCH).series[0]
    assert isinstance(chart, Chart)
    points = {line.name: len(line.x) for line in chart.lines}
    assert points["GELU (tanh)"] < 32 < points["GELU"]
