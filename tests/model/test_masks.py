import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.masks import allowed, blind_query, visible_range
from model.rules import AllOf, Anticausal, Bidirectional, Blocked, Causal, Custom, MaskRule, Prefix, Window

N = 9
CHECKER = tuple(tuple((i + j) % 2 == 0 for j in range(N)) for i in range(N))
CLOSED = tuple((row != 5,) * N for row in range(N))
TABLES = {
    Bidirectional(): lambda *_: True,
    Causal(): lambda i, j: j <= i,
    Anticausal(): lambda i, j: j >= i,
    Window(2, 0): lambda i, j: i - 2 <= j <= i,
    Window(0, 3): lambda i, j: i <= j <= i + 3,
    Window(1, 2): lambda i, j: -1 <= j - i <= 2,
    Window(100, 100): lambda *_: True,
    Prefix(0): lambda i, j: j <= i,
    Prefix(4): lambda i, j: j < 4 or j <= i,
    Prefix(N): lambda *_: True,
    Custom(CHECKER): lambda i, j: (i + j) % 2 == 0,
    Blocked(frozenset({(0, 0), (3, 8), (8, 3)})): lambda i, j: (i, j) not in {(0, 0), (3, 8), (8, 3)},
    AllOf((Causal(), Blocked(frozenset({(4, 2)})))): lambda i, j: j <= i and (i, j) != (4, 2),
    AllOf((Window(3, 3), Prefix(2), Custom(CHECKER))): lambda i, j: (
        abs(i - j) <= 3 and (j < 2 or j <= i) and (i + j) % 2 == 0
    ),
}
RULES = st.sampled_from(list(TABLES))
RANGES = st.tuples(st.integers(0, N), st.integers(0, N)).map(lambda ends: range(min(ends), max(ends)))


def _table(rule: MaskRule) -> torch.Tensor:
    return torch.tensor([[TABLES[rule](i, j) for j in range(N)] for i in range(N)])


@pytest.mark.parametrize("rule", TABLES, ids=str)
def test_every_rule_opens_what_it_says(rule: MaskRule) -> None:
    assert torch.equal(allowed(rule, range(N), range(N)), _table(rule))


@given(RULES, RANGES, RANGES)
def test_a_part_is_that_part_of_the_whole(rule: MaskRule, rows: range, keys: range) -> None:
    part = allowed(rule, rows, keys)
    assert part.shape == (len(rows), len(keys))
    assert torch.equal(part, _table(rule)[rows.start : rows.stop, keys.start : keys.stop])


@given(RULES, RANGES.filter(len))
def test_the_visible_range_leaves_out_only_closed_keys(rule: MaskRule, rows: range) -> None:
    seen = visible_range(rule, rows, N)
    left_out = [key for key in range(N) if key not in seen]
    assert not _table(rule)[rows.start : rows.stop, left_out].any()


@pytest.mark.parametrize(
    ("rule", "rows", "seen"),
    [
        (Causal(), range(2, 4), range(4)),
        (Anticausal(), range(2, 4), range(2, N)),
        (Window(1, 1), range(4, 6), range(3, 7)),
        (Prefix(6), range(2), range(6)),
    ],
)
def test_the_visible_range_is_tight(rule: MaskRule, rows: range, seen: range) -> None:
    assert visible_range(rule, rows, N) == seen


@pytest.mark.parametrize(
    ("rule", "query"),
    [
        (Blocked(frozenset((2, j) for j in range(N))), 2),
        (AllOf((Causal(), Blocked(frozenset({(0, 0)})))), 0),
        (AllOf((Anticausal(), Blocked(frozenset({(8, 8), (3, 4)})))), 8),
        (Custom(CLOSED), 5),
        (AllOf((Custom(CHECKER), Blocked(frozenset((7, j) for j in range(1, N, 2))))), 7),
        (AllOf((Window(0, 0), Blocked(frozenset({(6, 6)})))), 6),
        (AllOf((Custom(CLOSED), Blocked(frozenset({(3, 1)})))), 5),
    ],
)
def test_a_query_that_sees_nothing_is_found(rule: MaskRule, query: int) -> None:
    assert blind_query(rule, N) == query


@pytest.mark.parametrize("rule", TABLES, ids=str)
def test_no_query_is_blind_under_the_usual_rules(rule: MaskRule) -> None:
    assert blind_query(rule, N) is None
