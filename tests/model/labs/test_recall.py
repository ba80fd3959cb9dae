"""Recall across a gap: the task is what it says, the training can be watched and left, attention succeeds."""

import math

import pytest
import torch

from model.errors import InputError
from model.labs import recall
from model.labs.bench import Bench, Cancelled
from model.labs.parameters.recurrence import Recall
from model.labs.recall import ASKED, NOISE, RACING, Race, gaps, questions, result, run
from model.labs.result import Chart, Result


def test_a_question_is_a_symbol_then_noise_then_the_mark() -> None:
    ids = questions(200, gap=5, symbols=4, generator=torch.Generator().manual_seed(0))
    assert ids.shape == (200, 7)
    assert sorted(ids[:, 0].unique().tolist()) == [0, 1, 2, 3]
    assert sorted(ids[:, 1:-1].unique().tolist()) == list(range(4, 4 + NOISE))
    assert ids[:, -1].unique().tolist() == [4 + NOISE]


def test_gaps_grow_to_the_longest() -> None:
    assert gaps(1) == [1]
    assert gaps(10) == [1, 4, 10]
    assert gaps(64) == [1, 4, 16, 64]
    assert gaps(100) == [1, 4, 16, 64, 100]


@pytest.fixture(scope="module")
def raced() -> tuple[Result, list[tuple[float, str, Result | None]]]:
    told: list[tuple[float, str, Result | None]] = []
    found = run(Recall(longest_gap=24, symbols=4, steps=60), Bench(report=lambda *said: told.append(said)))
    return found, told


def test_attention_recalls_at_every_gap_and_a_plain_rnn_does_not(
    raced: tuple[Result, list[tuple[float, str, Result | None]]],
) -> None:
    found, _ = raced
    near, far = found.facts["table"][0], found.facts["table"][-1]  # type: ignore[index]
    assert (near["gap"], far["gap"]) == (1, 24)
    assert near["RNN"] > 0.9
    assert near["self-attention"] > 0.9
    assert far["self-attention"] > 0.9
    # Five standard errors around guessing.
    assert far["RNN"] < 0.25 + 5 * math.sqrt(0.25 * 0.75 / ASKED)
    assert [check.holds for check in found.checks] == [True]
    assert not any("judged" in note for note in found.notes)


@pytest.mark.parametrize("steps", [1, 20])
def test_who_is_hardly_trained_is_not_judged(steps: int) -> None:
    found = run(Recall(steps=steps, longest_gap=32), Bench())
    assert found.checks == []
    assert "Self-attention: not trained far enough to be judged. Take more steps." in found.notes


def test_a_net_that_learned_the_shortest_gap_and_forgets_the_longest_fails() -> None:
    race = Race(Recall(steps=80, longest_gap=4), [1, 4], learned_after=6)
    race.accuracy = {net: [1.0, 0.3] for net in RACING}
    (check,) = result(race).checks
    assert not check.holds
    assert check.origin == "estimate"


def test_the_race_is_told_step_by_step_with_pictures(
    raced: tuple[Result, list[tuple[float, str, Result | None]]],
) -> None:
    found, told = raced
    assert len(told) == 4 * 60 * len(RACING)
    fractions = [fraction for fraction, _, _ in told]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < fractions[-1] < 1
    pictures = [picture for _, _, picture in told if picture is not None]
    assert len(pictures) == 4 * 5
    curves = pictures[-1].series[1]
    assert isinstance(curves, Chart)
    assert curves.lines[0].y[0] == pytest.approx(math.log(4), abs=0.7)  # type: ignore[arg-type]
    accuracy = found.series[0]
    assert isinstance(accuracy, Chart)
    assert accuracy.lines[-1].origin == "theory"
    assert set(accuracy.lines[-1].y) == {0.25}


def test_a_seed_repeats_itself() -> None:
    parameters = Recall(longest_gap=2, steps=3)
    assert run(parameters, Bench()).as_json() == run(parameters, Bench()).as_json()


def test_who_leaves_stops_the_training_within_a_step() -> None:
    calls = []

    def leave(*_: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        run(Recall(), Bench(report=leave))
    assert len(calls) == 3


def test_what_would_take_minutes_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="fewer steps or a shorter gap"):
        run(Recall(longest_gap=256, steps=1000), Bench())


def test_an_rnn_whose_gradient_is_lost_can_only_guess() -> None:
    race = Race(Recall(steps=80, longest_gap=64), [1, 64], learned_after=6, traced=1e-20)
    race.accuracy = {net: [1.0, 1.0] for net in RACING}
    assert [check.holds for check in result(race).checks] == [True, False]
    race.accuracy["RNN"] = [1.0, 1 / 8]
    assert [check.holds for check in result(race).checks] == [True, True]
    race.traced = 1e-6
    assert len(result(race).checks) == 1


def test_the_gradient_that_is_traced_back_is_that_of_the_first_net() -> None:
    shares = [recall._traced(Recall(longest_gap=gap)) for gap in (4, 8, 64)]
    # Some 0.45 a step, as the page's section on gradients has it.
    assert 0.3**4 < shares[1] / shares[0] < 0.6**4
    assert shares[2] < recall.LOST


def test_bounds_agree_with_what_is_refused() -> None:
    limits = result(Race(Recall(longest_gap=64), gaps(64))).limits
    most = limits["steps"]
    assert (
        most * sum(gap + 2 for gap in gaps(64)) <= recall.MOST < (most + 1) * sum(gap + 2 for gap in gaps(64))
    )
    with pytest.raises(InputError, match="fewer steps"):
        run(Recall(longest_gap=64, steps=most + 1), Bench())
    assert result(Race(Recall(longest_gap=64, steps=80), gaps(64))).limits["longest_gap"] == 256
    longest = result(Race(Recall(longest_gap=8, steps=1000), gaps(8))).limits["longest_gap"]
    assert (
        1000 * sum(gap + 2 for gap in gaps(longest))
        <= recall.MOST
        < 1000 * sum(gap + 2 for gap in gaps(longest + 1))
    )
