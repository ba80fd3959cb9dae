"""Small models past their trained length: the language they learn, and which of them hold."""

import math
from collections import Counter

import pytest
import torch

from model.labs import past_length
from model.labs.bench import Bench, Cancelled
from model.labs.parameters.positions import PastLength
from model.labs.past_length import run
from model.labs.result import Chart, Result
from model.labs.small_models import VOCABULARY, Source, build, schemes


@pytest.fixture(scope="module")
def trained() -> tuple[Result, list[Result | None]]:
    partial: list[Result | None] = []
    bench = Bench(report=lambda _fraction, _words, so_far: partial.append(so_far))
    return run(PastLength(trained=16, times=3, steps=130), bench), partial


def test_what_is_added_fails_past_the_length_and_alibi_holds(
    trained: tuple[Result, list[Result | None]],
) -> None:
    result = trained[0]
    assert [check.name for check in result.checks if not check.holds] == []
    assert [check.origin for check in result.checks] == ["theory"] * 6 + ["estimate"] * 2
    assert (result.facts["complete"], result.facts["judged"]) == (True, True)
    rows = {row["positions"]: row for row in result.facts["table"]}  # type: ignore[attr-defined]
    assert set(rows) == set(schemes(9))
    for name in ("sinusoidal", "learned table"):
        assert rows[name]["loss past"] > rows["ALiBi"]["loss past"] + 0.5
    assert all(row["loss within"] > result.facts["entropy"] - 0.05 for row in rows.values())
    assert result.facts["best"] == "ALiBi"


def test_each_model_is_shown_as_soon_as_it_is_trained(trained: tuple[Result, list[Result | None]]) -> None:
    partial = [result for result in trained[1] if result is not None]
    charts = [result.series[0] for result in partial]
    lines = [chart.lines for chart in charts if isinstance(chart, Chart)]
    counts = [sum(None not in list(line.y) for line in six[:6]) for six in lines]
    assert set(counts) == {1, 2, 3, 4, 5}
    assert counts == sorted(counts)
    # Each keeps its place, and so its colour.
    assert {tuple(line.name for line in six[:6]) for six in lines} == {tuple(schemes(9))}
    assert [result.facts["models"] for result in partial] == counts
    assert not any(result.facts["complete"] for result in partial)


def test_the_entropy_is_what_the_language_has() -> None:
    source = Source.of(0, 0.25)
    ids = source.draw(4000, 40, torch.Generator().manual_seed(1))
    right = Counter((ids[:, 2:] == source.table[ids[:, 1:-1], ids[:, :-2]]).flatten().tolist())
    share = right[True] / right.total()
    # A stray token hits the rule's by chance too.
    assert share == pytest.approx(0.75 + 0.25 / VOCABULARY, abs=0.01)
    counted = -share * math.log(share) - (1 - share) * math.log((1 - share) / (VOCABULARY - 1))
    assert source.entropy == pytest.approx(counted, abs=0.02)


@pytest.mark.parametrize(("noise", "entropy"), [(0.0, 0.0), (1.0, math.log(VOCABULARY))])
def test_the_entropy_at_both_ends(noise: float, entropy: float) -> None:
    assert Source.of(0, noise).entropy == pytest.approx(entropy)


def test_untrained_models_are_not_judged() -> None:
    result = run(PastLength(trained=16, times=2, steps=1), Bench())
    assert not [check for check in result.checks if check.origin == "estimate"]
    assert "Not trained far enough" in " ".join(result.notes)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_models_that_learned_half_are_not_judged(seed: int) -> None:
    result = run(PastLength(steps=20, seed=seed), Bench())
    assert not [check for check in result.checks if check.origin == "estimate"]
    assert "sinusoidal, ALiBi and learned table" in " ".join(result.notes)


def test_nobody_is_judged_where_there_is_nothing_to_learn() -> None:
    checks = run(PastLength(trained=16, times=2, steps=1, noise=1.0), Bench()).checks
    assert len(checks) == 6
    assert all(check.holds for check in checks)


def test_who_knows_the_rule_pays_the_entropy() -> None:
    source = Source.of(3, 0.2)
    ids = source.draw(2000, 41, torch.Generator().manual_seed(4))
    paid = source.least(ids)
    assert paid[:, 0].unique().tolist() == [math.log(VOCABULARY)]
    # 78,000 tokens of a spread of about 1 nat.
    assert paid[:, 1:].mean().item() == pytest.approx(source.entropy, abs=0.02)
    hit = source.table[ids[0, 5], ids[0, 4]] == ids[0, 6]
    chance = 0.8 * bool(hit) + 0.2 / VOCABULARY
    assert paid[0, 5].item() == pytest.approx(-math.log(chance))


def test_models_that_see_the_answer_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_length, "losses", lambda _model, ids: torch.zeros(len(ids), 32).double())
    checks = run(PastLength(trained=16, times=2, steps=1), Bench()).checks
    assert [check.holds for check in checks[:6]] == [False] * 6


def test_a_scheme_that_loses_no_more_than_alibi_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = torch.Generator().manual_seed(0)
    monkeypatch.setattr(
        past_length,
        "losses",
        lambda _model, ids: 0.6 + 0.1 * torch.rand(len(ids), 32, generator=noise).double(),
    )
    checks = run(PastLength(trained=16, times=2, steps=1), Bench()).checks
    assert [check.holds for check in checks if check.origin == "estimate"] == [False, False]


def test_a_seed_repeats_everything_and_touches_no_global_generator() -> None:
    before = torch.get_rng_state()
    first, again, other = (
        run(PastLength(trained=16, times=2, steps=3, seed=seed), Bench()).facts["table"] for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other
    assert torch.equal(before, torch.get_rng_state())


def test_it_stops_when_nobody_listens() -> None:
    def left(*_: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        run(PastLength(), Bench(report=left))


def test_models_differ_in_their_positions_alone() -> None:
    weights = {
        name: build(position, 0).stack.blocks[0].attention.q.weight for name, position in schemes(32).items()
    }  # type: ignore[union-attr]
    assert all(weight.shape == (64, 64) for weight in weights.values())
