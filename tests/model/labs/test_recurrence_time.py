"""How times are taken, compared and told. No test says how long anything took."""

import pytest

from model.errors import InputError
from model.labs import recurrence_time
from model.labs.bench import Bench, Cancelled
from model.labs.clock import Times, spans
from model.labs.nets import NETS, RECURRENT
from model.labs.parameters.recurrence import RecurrenceTime
from model.labs.recurrence_time import run
from model.labs.result import Chart, Result


def _times(first: list[list[float]], second: list[list[float]]) -> Times:
    lengths = range(1, len(first) + 1)
    taken = {("RNN", n): values for n, values in zip(lengths, first, strict=True)}
    return Times("x", {**taken, **{("LSTM", n): values for n, values in zip(lengths, second, strict=True)}})  # type: ignore[dict-item]


def test_every_net_is_timed_at_every_length_with_a_band() -> None:
    told: list[tuple[float, str, Result | None]] = []
    parameters = RecurrenceTime(length=6, width=4, rounds=4, backward=True)
    found = run(parameters, Bench(report=lambda *said: told.append(said)))
    (chart,) = found.series
    assert isinstance(chart, Chart)
    assert [line.name for line in chart.lines] == list(NETS)
    for line in chart.lines:
        assert list(line.x) == [1, 2, 4, 6]
        assert line.low is not None
        assert line.high is not None
        assert all(0 < low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))  # type: ignore[operator]
    assert found.facts["rounds"] == 4
    assert len([said for _, _, said in told if said is not None]) == 4
    assert [fraction for fraction, _, _ in told] == sorted(fraction for fraction, _, _ in told)


def test_who_leaves_stops_it_at_once() -> None:
    calls = []

    def leave(*_: object) -> None:
        calls.append(1)
        raise Cancelled

    with pytest.raises(Cancelled):
        run(RecurrenceTime(length=8, width=4), Bench(report=leave))
    assert len(calls) == 1


def test_medians_and_quartiles() -> None:
    times = _times([[5.0, 1.0, 3.0, 2.0, 4.0]], [[1.0]])
    assert times.quantiles("RNN", 1) == [2.0, 3.0, 4.0]


def test_only_bands_that_do_not_overlap_are_called_faster() -> None:
    times = _times([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[4, 5, 6], [4, 5, 6], [1, 2, 3]])
    assert times.compared("RNN", "LSTM", [1, 2, 3]) == [-1, 0, 1]
    assert times.compared("LSTM", "RNN", [1, 2, 3]) == [1, 0, -1]


def test_a_crossing_lies_where_straight_lines_on_log_axes_meet() -> None:
    # n and 16 / n meet at 4.
    lengths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    times = _times([[float(n)] * 3 for n in lengths], [[16 / n] * 3 for n in lengths])
    assert times.crossings("RNN", "LSTM", [1, 8]) == [pytest.approx(4)]
    assert times.crossings("RNN", "LSTM", [8, 16]) == []


def test_spans_are_told_in_words() -> None:
    assert spans([1, 2, 4, 8], [True, True, False, True]) == "1 to 2, 8"
    assert spans([1, 2], [False, False]) == "none"


def test_what_would_take_minutes_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="smaller length"):
        run(RecurrenceTime(length=2048, width=512, rounds=200), Bench())


def _grown(power: float, start: float = 0.01, spread: float = 0.01, rounds: int = 9) -> Times:
    factors = [1 + spread * (i - rounds // 2) / rounds for i in range(rounds)]
    return Times(
        "x",
        {("RNN", n): [(start + 0.1 * n**power) * factor for factor in factors] for n in (1, 2, 4, 8, 16, 32)},
    )


@pytest.mark.parametrize(("power", "holds"), [(1.0, True), (2.0, False), (0.5, False)])
def test_time_that_does_not_grow_with_n_is_seen(power: float, holds: bool) -> None:
    found = _grown(power).growth("RNN", [1, 2, 4, 8, 16, 32])
    assert found is not None
    assert recurrence_time._linear("RNN", *found).holds == holds


def test_what_is_disturbed_or_short_is_not_judged() -> None:
    lengths = [1, 2, 4, 8, 16, 32]
    assert _grown(1, spread=1).growth("RNN", lengths) is None
    assert _grown(1, start=10).growth("RNN", lengths) is None
    assert _grown(1, rounds=5).growth("RNN", lengths) is None
    assert _grown(1).growth("RNN", lengths[:-1]) is None


def test_steps_in_turn_are_counted_beside_the_times() -> None:
    found = run(RecurrenceTime(length=6, width=4, rounds=4), Bench())
    steps = {check.name.split(":")[0]: check.measured for check in found.checks}
    assert steps == {net: 6 if net in RECURRENT else 1 for net in NETS}
    assert any("not judged" in note for note in found.notes)
