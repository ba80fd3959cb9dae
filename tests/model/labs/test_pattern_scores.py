import math

import pytest
import torch
from torch import Tensor

from model.labs.pattern_scores import Seen, means, position_rows, repeat_rows, repeat_rows_at, spread_rows
from model.labs.word_links import Word

T = 12


def words(count: int = T, special: tuple[int, ...] = (), ends: tuple[int, ...] = ()) -> list[Word]:
    return [
        Word("." if place in ends else f"w{place}", (place,), special=place in special)
        for place in range(count)
    ]


def seen(pattern: Tensor, *, causal: bool = False, **which: tuple[int, ...]) -> Seen:
    count = pattern.shape[-1]
    opened = torch.ones(count, count, dtype=torch.bool)
    opened = opened.tril() if causal else opened
    return Seen(pattern.expand(1, count, count), opened, range(count), words(count, **which))


def one_offset(offset: int, count: int = T) -> Tensor:
    """Every token looks at the one `offset` further, the outermost at itself."""
    pattern = torch.zeros(count, count)
    for row in range(count):
        pattern[row, row + offset if 0 <= row + offset < count else row] = 1
    return pattern


@pytest.mark.parametrize(("name", "offset"), [("previous", -1), ("next", 1), ("self", 0)])
def test_a_pattern_at_one_offset_scores_1_there_and_0_elsewhere(name: str, offset: int) -> None:
    weights, shares = (means([rows]) for rows in position_rows(seen(one_offset(offset))))
    assert weights[name].item() == shares[name].item() == 1
    for other in {"previous", "next"} - {name}:
        assert weights[other].item() == shares[other].item() == 0


def test_a_pattern_half_on_the_previous_token_scores_a_half() -> None:
    pattern = 0.5 * one_offset(-1) + 0.5 * one_offset(-3)
    weights, shares = (means([rows]) for rows in position_rows(seen(pattern)))
    assert weights["previous"].item() == pytest.approx(0.5)
    # Two equal links: none is the strongest, in the first rows neither, which look at themselves too.
    assert shares["previous"].item() == pytest.approx(0)


@pytest.mark.parametrize("causal", [False, True])
def test_a_flat_pattern_has_no_strongest_link(causal: bool) -> None:
    flat = torch.ones(T, T)
    flat = flat.tril() if causal else flat
    weights, shares = position_rows(seen(flat / flat.sum(1, keepdim=True), causal=causal))
    assert all(rows.sum() == 0 for rows in shares.values())
    expected = sum(1 / (row + 1) for row in range(1, T)) / (T - 1) if causal else 1 / T
    assert weights["previous"].mean().item() == pytest.approx(expected)


def test_special_tokens_do_not_ask_but_can_be_looked_at() -> None:
    pattern = one_offset(-1)
    pattern[-1] = torch.eye(T)[0]
    weights = position_rows(seen(pattern, special=(0, T - 1)))[0]["previous"]
    assert weights.shape == (1, T - 2)
    assert weights.mean() == 1


def test_sink_and_delimiters() -> None:
    pattern = torch.zeros(T, T)
    pattern[:, 0], pattern[:, 5] = 0.7, 0.3
    score, beside = (means([rows]) for rows in spread_rows(seen(pattern, ends=(5, 9))))
    assert score["first"].item() == pytest.approx(0.7)
    assert score["delimiter"].item() == pytest.approx(0.3)
    assert beside["first"].item() == pytest.approx(0.7 - 1 / T)
    assert beside["delimiter"].item() == pytest.approx(0.3 - 2 / T)
    entropy = -(0.7 * math.log(0.7) + 0.3 * math.log(0.3))
    assert score["broad"].item() == pytest.approx(entropy / math.log(T))
    assert beside["broad"].item() == pytest.approx(2 / T)


def test_a_flat_pattern_is_broad_and_gains_nothing_beside() -> None:
    flat = torch.ones(T, T).tril()
    flat = flat / flat.sum(1, keepdim=True)
    score, beside = (means([rows]) for rows in spread_rows(seen(flat, causal=True, ends=(5,))))
    assert score["broad"].item() == pytest.approx(1)
    assert beside["broad"].item() == pytest.approx(1)
    assert beside["first"].item() == pytest.approx(0, abs=1e-6)
    assert beside["delimiter"].item() == pytest.approx(0, abs=1e-6)


def test_rows_that_see_no_delimiter_do_not_count() -> None:
    flat = torch.eye(T)
    assert spread_rows(seen(flat, causal=True, ends=(5,)))[0]["delimiter"].shape == (1, T - 5)
    assert "delimiter" not in means([spread_rows(seen(flat))[0]])


@pytest.mark.parametrize(("shift", "name"), [(1, "induction"), (0, "duplicate")])
def test_exact_induction_and_duplicate_patterns_score_1(shift: int, name: str) -> None:
    start, block = 1, 5
    pattern = torch.zeros(1, start + 2 * block + 1, start + 2 * block + 1)
    for row in range(start + block, start + 2 * block):
        pattern[0, row, row - block + shift] = 1
    rows = repeat_rows(pattern, start, block)
    assert rows[name].shape == (1, block - 1)
    assert rows[name].mean() == 1
    assert rows["duplicate" if shift else "induction"].mean() == 0


def test_repetitions_in_any_text() -> None:
    pattern = torch.arange(36.0).view(1, 6, 6)
    rows = repeat_rows_at(pattern, [(4, 1), (3, 2)])
    # What follows at once has no token between: the one after its first occurrence is the token itself.
    assert rows["induction"].tolist() == [[pattern[0, 4, 2].item()]]
    assert rows["duplicate"].tolist() == [[pattern[0, 4, 1].item()]]
    assert means([repeat_rows_at(pattern, [])]) == {}


def test_rows_of_several_probes_count_alike() -> None:
    short, long = {"a": torch.ones(1, 1)}, {"a": torch.zeros(1, 3)}
    assert means([short, long])["a"].item() == 0.25
