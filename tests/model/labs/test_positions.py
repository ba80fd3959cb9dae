"""Sinusoidal positions against the formula, computed here with numpy and math alone."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.positions import Positions
from model.labs.positions import run
from model.labs.result import Chart, Check, Heatmap, Result
from model.labs.sinusoid import Sinusoid


def _check(result: Result, start: str) -> Check:
    return next(check for check in result.checks if check.name.startswith(start))


def _chart(result: Result, name: str) -> Chart:
    found = next(series for series in result.series if series.id == name)
    assert isinstance(found, Chart)
    return found


@pytest.mark.parametrize(("step", "published"), [(1, 249.10), (7, 187.86), (50, 131.09)])
def test_dot_products_at_width_512_are_the_published_ones(step: int, published: float) -> None:
    found = _check(run(Positions(d_model=512, offset=step), Bench()), f"PE(p) · PE(p + {step}) ")
    exact = sum(math.cos(step / 10000 ** (2 * i / 512)) for i in range(256))
    assert found.holds
    assert found.measured == pytest.approx(exact, abs=1e-3)
    assert round(found.measured, 2) == published


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"d_model": 2, "length": 1},
        {"d_model": 1024, "length": 64},
        {"base": 1.0},
        {"base": 1e9},
        {"position": 60, "offset": -40},
    ],
)
def test_every_check_holds_at_all_sizes(given: dict[str, float]) -> None:
    result = run(Positions.model_validate(given), Bench())
    assert [check.name for check in result.checks if not check.holds] == []
    assert len(result.checks) >= 6
    assert {series.id for series in result.series} == {"waves", "matrix", "wavelengths", "dots", "rotation"}


def test_the_matrix_holds_sines_and_cosines() -> None:
    matrix = run(Positions(d_model=6, length=9, base=50.0), Bench()).series[1]
    assert isinstance(matrix, Heatmap)
    angles = np.arange(9)[:, None] / 50.0 ** (np.arange(0, 6, 2) / 6)
    assert np.allclose(matrix.values[:, 0::2], np.sin(angles), atol=1e-12)
    assert np.allclose(matrix.values[:, 1::2], np.cos(angles), atol=1e-12)


def test_wavelengths_run_from_two_pi_to_two_pi_times_base_but_a_step() -> None:
    facts = run(Positions(d_model=128, base=10_000.0), Bench()).facts
    assert float(facts["shortest"]) == pytest.approx(2 * math.pi)  # type: ignore[arg-type]
    assert float(facts["longest"]) == pytest.approx(2 * math.pi * 10_000 ** (126 / 128))  # type: ignore[arg-type]


def test_the_rotation_knows_only_the_step() -> None:
    wave = Sinusoid(16, 10_000.0)
    angles = [9 / 10_000 ** (2 * i / 16) for i in range(8)]
    matrix = np.zeros((16, 16))
    for i, angle in enumerate(angles):
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]
        ]  # fmt: skip
    start = wave.at(0, 20).numpy()
    assert np.allclose(start @ matrix.T, wave.at(9, 20).numpy(), atol=1e-12)
    assert np.allclose(wave.turned(wave.at(0, 20), 9).numpy(), start @ matrix.T, atol=1e-12)


def test_a_wrong_encoding_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Sinusoid.at
    monkeypatch.setattr(Sinusoid, "at", lambda self, first, count: real(self, first, count) + 1e-2)
    wrong = run(Positions(), Bench()).checks
    assert sum(not check.holds for check in wrong) == len(wrong)


def test_one_position_is_enough() -> None:
    result = run(Positions(length=1), Bench())
    assert all(check.holds for check in result.checks)
    assert list(_chart(result, "dots").lines[0].x) == [0]


def test_no_position_below_zero_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[int] = []
    real = Sinusoid.at

    def watched(self: Sinusoid, start: int, count: int) -> object:
        first.append(start)
        return real(self, start, count)

    monkeypatch.setattr(Sinusoid, "at", watched)
    result = run(Positions(position=60, offset=-40), Bench())
    assert min(first) >= 0
    assert all(check.holds for check in result.checks)
    assert "PE(p) · PE(p − 40) at every p" in [check.name for check in result.checks]
    assert next(iter(_chart(result, "dots").lines[0].x)) == -60


def test_the_rotation_is_shown_beside_what_it_should_give() -> None:
    matrix = run(Positions(position=3, offset=4, d_model=8), Bench()).series[4]
    assert isinstance(matrix, Heatmap)
    assert list(matrix.rows) == ["PE(3)", "PE(3) turned by 4 steps", "PE(7)"]
    assert np.allclose(matrix.values[1], matrix.values[2], atol=1e-12)
    assert np.allclose(matrix.values[2, 0::2], np.sin(7 / 10_000 ** (np.arange(4) / 4)), atol=1e-12)


def test_the_chosen_pair_is_marked_among_the_wavelengths() -> None:
    marked = _chart(run(Positions(pair=5), Bench()), "wavelengths").lines[2]
    assert list(marked.x) == [5]
    assert next(iter(marked.y)) == pytest.approx(2 * math.pi * 10_000 ** (10 / 128))


def test_a_wrong_speed_of_one_pair_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Sinusoid(128, 10_000.0).wavelengths
    found[40] *= 1.001
    monkeypatch.setattr(Sinusoid, "wavelengths", found)
    failed = [check.name for check in run(Positions(), Bench()).checks if not check.holds]
    assert failed == ["every wavelength by its formula, less 1, largest"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"d_model": 7}, "even"),
        ({"d_model": 8, "pair": 4}, "choose one from 0 to 3"),
        (
            {"position": 0, "offset": -2047},
            "is −2,047, but positions begin at 0: choose an offset of 0 or more",
        ),
        ({"position": 9, "offset": -10}, "choose an offset of −9 or more"),
    ],
)
def test_what_is_no_wave_is_refused_with_the_way_out(given: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(Positions.model_validate(given), Bench())


@pytest.mark.parametrize("base", [-3.0, 0.0, 0.5])
def test_every_base_that_is_too_small_gets_the_same_sentence(base: float) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1 "):
        Positions(base=base)


@pytest.mark.parametrize("given", [{"base": -1.0}, {"d_model": 0}, {"length": 0}, {"pair": "8"}, {"seed": 1}])
def test_what_is_out_of_bounds_is_no_parameter(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Positions.model_validate(given)


def test_what_a_picture_leaves_out_is_said() -> None:
    result = run(Positions(d_model=600, length=700), Bench())
    assert "the first 128 of 700 positions and 256 of 600 dimensions" in result.series[1].title
