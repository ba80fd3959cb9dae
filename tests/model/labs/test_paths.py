"""Path lengths, against what geometry says."""

from itertools import pairwise
from typing import Any

import pytest
import torch

from model.errors import InputError
from model.labs import paths
from model.labs.bench import Bench
from model.labs.parameters.recurrence import Paths
from model.labs.paths import hops, kinds, reads, route, run
from model.labs.result import Chart


def _hops(**given: int) -> dict[str, int | None]:
    return run(Paths(**given), Bench()).facts["hops"]  # type: ignore[return-value]


@pytest.mark.parametrize(("source", "target", "reach"), [(0, 9, 1), (2, 3, 2), (1, 11, 3), (0, 11, 4)])
def test_hops_follow_the_distance(source: int, target: int, reach: int) -> None:
    apart = target - source
    assert _hops(length=12, source=source, target=target, reach=reach) == {
        "recurrent": apart,
        "self_attention": 1,
        "causal_attention": 1,
        "window_attention": -(-apart // reach),
        "convolution": -(-apart // reach),
    }


def test_nothing_goes_back_in_recurrent_and_causal_nets_and_that_is_said() -> None:
    found = run(Paths(length=8, source=6, target=1, reach=5), Bench())
    assert found.facts["hops"] == {
        "recurrent": None,
        "self_attention": 1,
        "causal_attention": None,
        "window_attention": 1,
        "convolution": 1,
    }
    assert "recurrent and causal attention" in found.notes[0]


def test_from_a_position_to_itself_there_is_nothing_to_cross() -> None:
    assert set(_hops(source=3, target=3).values()) == {0}


def test_what_one_step_reads_is_what_the_module_can_read() -> None:
    found = {kind.name: reads(kind.net, 6) for kind in kinds(reach=2)}
    i = torch.arange(6)
    back = i[:, None] - i[None, :]
    assert torch.equal(found["recurrent"], (back == 0) | (back == 1))
    assert found["self-attention"].all()
    assert torch.equal(found["causal attention"], back >= 0)
    assert torch.equal(found["window attention"], back.abs() <= 2)
    assert torch.equal(found["convolution"], back.abs() <= 2)


def test_a_route_takes_only_steps_that_are_read() -> None:
    read = reads(kinds(reach=3)[4].net, 20)
    path = route(read, hops(read), 1, 18)
    assert (path[0], path[-1], len(path) - 1) == (1, 18, 6)
    assert all(read[after, before] for before, after in pairwise(path))


def test_the_longest_path_grows_with_n_only_where_hops_are_short() -> None:
    found = run(Paths(length=33, source=0, target=32, reach=4), Bench())
    assert all(check.holds for check in found.checks)
    (chart,) = found.series
    assert isinstance(chart, Chart)
    last = {line.name: list(line.y)[-1] for line in chart.lines}
    assert last == {
        "recurrent": 32,
        "self-attention and causal attention": 1,
        "window attention and convolution": 8,
    }


def test_a_position_outside_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="The target is position 14, but 8 positions count from 0 to 7"):
        run(Paths(length=8), Bench())


def test_two_positions_are_enough() -> None:
    assert _hops(length=2, source=0, target=1)["recurrent"] == 1


@pytest.mark.parametrize("wrong", [
    lambda right: [right[0], right[-1]],
    lambda right: [right[0], right[0] + 1, *right],
    lambda right: right[:-1],
    lambda _: [],
])  # fmt: skip
def test_a_way_that_cannot_be_is_seen(monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    assert all(check.holds for check in run(Paths(source=2, target=9), Bench()).checks)
    monkeypatch.setattr(paths, "route", lambda *given: wrong(route(*given)))
    assert not all(check.holds for check in run(Paths(source=2, target=9), Bench()).checks)


def test_a_way_back_in_a_recurrent_net_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(check.holds for check in run(Paths(source=9, target=2), Bench()).checks)
    monkeypatch.setattr(paths, "route", lambda *given: list(given[2:]))
    failing = [check.name for check in run(Paths(source=9, target=2), Bench()).checks if not check.holds]
    assert "recurrent: positions on a way back, which there is not" in failing


def test_a_way_that_there_is_not_is_left_out_of_the_sentence() -> None:
    assert (
        run(Paths(source=9, target=2, reach=7), Bench()).facts["way"]
        == "1 hop in self-attention and 1 hop in a window"
    )
    assert run(Paths(length=8, source=1, target=4), Bench()).facts["way"] == (
        "3 hops in a recurrent net, 1 hop in self-attention and 2 hops in a window"
    )
