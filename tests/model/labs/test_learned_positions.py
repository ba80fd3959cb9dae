"""minilm's table of positions, against what numpy makes of the same rows."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from model.errors import InputError
from model.labs import learned_positions
from model.labs.bench import Bench
from model.labs.learned_positions import run
from model.labs.parameters.positions import LearnedPositions
from model.labs.position_table import Table, peaks, spectrum
from model.labs.result import Chart, Heatmap, Result

pytestmark = pytest.mark.weights


def _series(result: Result, name: str) -> Chart | Heatmap:
    return next(series for series in result.series if series.id == name)


@pytest.fixture(scope="module")
def rows(real_bench: Bench) -> np.ndarray:
    return (
        real_bench.model("minilm")
        .transformer.get_parameter("embeddings.positions.weight")
        .detach()
        .numpy()
        .astype(float)
    )


def test_every_check_holds_and_all_pictures_are_there(real_bench: Bench) -> None:
    result = run(LearnedPositions(), real_bench)
    assert [check.name for check in result.checks if not check.holds] == []
    assert {series.id for series in result.series} == {"table", "similarity", "one", "components", "periods"}
    assert (result.facts["rows"], result.facts["width"]) == (512, 384)


def test_similarities_are_cosines(real_bench: Bench, rows: np.ndarray) -> None:
    result = run(LearnedPositions(position=37), real_bench)
    one = _series(result, "one")
    assert isinstance(one, Chart)
    expected = rows @ rows[37] / (np.linalg.norm(rows, axis=1) * np.linalg.norm(rows[37]))
    assert np.allclose(torch.as_tensor(one.lines[0].y).numpy(), expected, atol=1e-9)
    nearest = np.argsort(expected)[-2]
    assert result.facts["nearest"] == nearest
    assert abs(int(nearest) - 37) == 1


def test_components_are_those_of_the_covariance(real_bench: Bench, rows: np.ndarray) -> None:
    facts = run(LearnedPositions(leave_out=1), real_bench).facts
    share = np.linalg.eigvalsh(np.cov(rows[1:].T))[::-1]
    share = share / share.sum()
    assert float(facts["first_three"]) == pytest.approx(share[:3].sum(), rel=1e-9)  # type: ignore[arg-type]
    assert facts["components_for_90"] == int(np.searchsorted(share.cumsum(), 0.9)) + 1


def test_a_wave_is_found_with_its_period() -> None:
    places = np.arange(120)
    wave = np.stack([np.sin(2 * np.pi * places / 15), np.cos(2 * np.pi * places / 15)], axis=1)
    power = spectrum(Table(torch.from_numpy(wave), 0).centred).numpy()
    assert int(power.argmax()) == 120 // 15
    assert power.max() == pytest.approx(1)


@pytest.mark.parametrize("length", [7, 8])
def test_the_spectrum_sums_to_one_for_even_and_odd_lengths(length: int) -> None:
    noise = np.random.default_rng(0).normal(size=(length, 5))
    assert spectrum(Table(torch.from_numpy(noise), 0).centred).sum().item() == pytest.approx(1)


def test_shuffled_rows_fail_the_checks_about_order(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = learned_positions._read

    def shuffled(*given: object) -> Table:
        table = real(*given)  # type: ignore[arg-type]
        return Table(
            table.rows[torch.randperm(512, generator=torch.Generator().manual_seed(3))], table.left_out
        )

    monkeypatch.setattr(learned_positions, "_read", shuffled)
    result = run(LearnedPositions(), real_bench)
    neighbours, periods, rows = result.checks[:3]
    assert neighbours.measured < 0.3
    assert periods.measured < 0.2
    assert not rows.holds


def _failed(result: Result) -> list[str]:
    return [check.name.split(",")[0] for check in result.checks if not check.holds]


@pytest.mark.parametrize(
    "change", [lambda rows: rows.roll(1, 0), lambda rows: rows[:, :5], lambda rows: rows[1:]]
)
def test_rows_that_are_not_the_models_are_noticed(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch, change: Callable[[Tensor], Tensor]
) -> None:
    real = learned_positions._read
    monkeypatch.setattr(
        learned_positions, "_read", lambda *given: Table(change(real(*given).rows), real(*given).left_out)
    )
    assert "rows" in _failed(run(LearnedPositions(), real_bench))


def test_a_table_that_is_not_centred_is_noticed(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "centred", property(lambda self: self.rows[self.left_out :]))
    failed = _failed(run(LearnedPositions(), real_bench))
    assert any(name.startswith("share of component 1") for name in failed)
    assert any(name.startswith("share of period") for name in failed)


def test_one_turn_in_the_table_is_no_period(real_bench: Bench) -> None:
    places = torch.arange(64, dtype=torch.float64)[:, None]
    trend = Table(places * torch.ones(1, 3) + 20 * torch.cos(2 * torch.pi * places * 4 / 64), 0)
    power = spectrum(trend.centred)[1:]
    assert int(power.argmax()) == 0
    assert peaks(power)[0].item() + 1 == 4
    periods = run(LearnedPositions(), real_bench).facts["periods"]
    assert all(row["period, in positions"] < 511 / 2 + 1 for row in periods)  # type: ignore[attr-defined]


def test_what_a_picture_leaves_out_is_said_in_its_title(real_bench: Bench) -> None:
    result = run(LearnedPositions(first=400), real_bench)
    titles = {series.id: series.title for series in result.series}
    assert "positions 400 to 511 of 512, 256 of 384 dimensions" in titles["table"]
    assert "one position in 4" in titles["similarity"]
    assert titles["components"].startswith("Positions 400 to 511 ")
    assert list(result.notes) == []


def test_the_side_of_a_model_of_two_is_said(real_bench: Bench) -> None:
    sides = [
        run(LearnedPositions(model=model), real_bench).facts["side"]
        for model in ("minilm", "whisper-tiny.en")
    ]
    assert sides == ["", "decoder"]


@pytest.mark.parametrize(
    ("given", "words"),
    [({"model": "smollm2"}, "choose minilm"), ({"position": 512}, "0 to 511"), ({"first": 900}, "0 to 511")],
)
def test_what_is_not_there_is_refused(real_bench: Bench, given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(LearnedPositions.model_validate(given), real_bench)
