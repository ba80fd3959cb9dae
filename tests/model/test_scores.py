from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from model.rules import (
    AllOf,
    Anticausal,
    Bidirectional,
    Blocked,
    Causal,
    Custom,
    MaskRule,
    Prefix,
    ScoreRule,
    Window,
)
from model.scores import ROWS, STAGES, Stage, attend, attention, open_keys, visible_keys
from tests import numpy_attention

N, WIDTH = 13, 6
LONG = 300
DIAGONAL = tuple(tuple(i == j or (i * j) % 3 == 1 for j in range(LONG)) for i in range(LONG))
MASKS: dict[str, tuple[MaskRule, Callable[[int, int], bool]]] = {
    "bidirectional": (Bidirectional(), lambda *_: True),
    "causal": (Causal(), lambda i, j: j <= i),
    "anticausal": (Anticausal(), lambda i, j: j >= i),
    "window": (Window(3, 1), lambda i, j: i - 3 <= j <= i + 1),
    "prefix": (Prefix(4), lambda i, j: j <= i or j < 4),
    "custom": (Custom(DIAGONAL), lambda i, j: DIAGONAL[i][j]),
    "blocked": (
        AllOf((Causal(), Blocked(frozenset({(5, 2), (12, 12)})))),
        lambda i, j: j <= i and (i, j) not in {(5, 2), (12, 12)},
    ),
}
HEADS = [(6, 6), (6, 2), (6, 1), (5, 1)]


def _causes(heads: int, kv_heads: int, tokens: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    counts = (heads, kv_heads, kv_heads)
    q, k, v = (torch.randn(count, tokens, WIDTH, generator=random) * 1.5 for count in counts)
    return q, k, v


def _mixed_rule(heads: int) -> tuple[ScoreRule, list[Callable[[int, int], bool]]]:
    chosen = [list(MASKS.values())[head % len(MASKS)] for head in range(heads)]
    scales = tuple(WIDTH**-0.5 * (1 + head / 2) for head in range(heads))
    return ScoreRule(scales, tuple(rule for rule, _ in chosen)), [sees for _, sees in chosen]


def _rule(mask: MaskRule, heads: int, scale: float = WIDTH**-0.5) -> ScoreRule:
    return ScoreRule((scale,) * heads, (mask,) * heads)


def _assert_stages(
    q: Tensor, k: Tensor, rule: ScoreRule, sees: list[Callable[[int, int], bool]], bound: float
) -> None:
    expected = numpy_attention.stages(q.double().numpy(), k.double().numpy(), rule.scales, sees)
    for stage in STAGES:
        found = attention(q, k, rule, heads=range(rule.heads), rows=range(q.shape[1]), stage=stage).numpy()
        assert np.array_equal(np.isinf(found), np.isinf(expected[stage])), stage
        shown = np.isfinite(found)
        assert abs(found[shown] - expected[stage][shown]).max() <= bound * max(1, abs(found[shown]).max()), (
            stage
        )


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
def test_every_stage_is_the_formula(name: str, heads: int, kv_heads: int) -> None:
    q, k, _ = _causes(heads, kv_heads, N)
    rule, sees = MASKS[name]
    _assert_stages(q, k, _rule(rule, heads), [sees] * heads, 1e-6)
    _assert_stages(q.double(), k.double(), _rule(rule, heads), [sees] * heads, 1e-13)


@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
def test_every_head_may_have_its_own_rule(heads: int, kv_heads: int) -> None:
    q, k, _ = _causes(heads, kv_heads, N)
    _assert_stages(q, k, *_mixed_rule(heads), 1e-6)


@given(st.sampled_from(HEADS), st.data(), st.sampled_from(STAGES))
def test_some_heads_and_rows_are_that_part_of_all(
    heads: tuple[int, int], data: st.DataObject, stage: Stage
) -> None:
    q, k, _ = _causes(*heads, N)
    rule, _ = _mixed_rule(heads[0])
    first, row = data.draw(st.integers(0, heads[0] - 1)), data.draw(st.integers(0, N - 1))
    some = range(first, data.draw(st.integers(first + 1, heads[0])))
    rows = range(row, data.draw(st.integers(row + 1, N)))
    whole = attention(q, k, rule, heads=range(heads[0]), rows=range(N), stage=stage)
    part = attention(q, k, rule, heads=some, rows=rows, stage=stage)
    expected = whole[some.start : some.stop, rows.start : rows.stop]
    torch.testing.assert_close(part, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("stage", ["masked", "weights"])
def test_leaving_out_keys_nobody_sees_changes_nothing(name: str, stage: Stage) -> None:
    q, k, _ = _causes(6, 2, N)
    rule, rows = _rule(MASKS[name][0], 6), range(4, 7)
    keys = visible_keys(rule, rows, N)
    whole = attention(q, k, rule, heads=range(6), rows=rows, stage=stage)
    part = attention(q, k, rule, heads=range(6), rows=rows, keys=keys, stage=stage)
    torch.testing.assert_close(part, whole[..., keys.start : keys.stop], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", [*MASKS, "of each head its own"])
@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
def test_fused_and_explicit_agree(name: str, heads: int, kv_heads: int) -> None:
    assert LONG > ROWS
    q, k, v = (part[None] for part in _causes(heads, kv_heads, LONG))
    rule = _rule(MASKS[name][0], heads) if name in MASKS else _mixed_rule(heads)[0]
    fused, explicit = attend(q, k, v, rule), attend(q, k, v, rule, fused=False)
    assert (fused - explicit).abs().max() < 1e-5
    weights = attention(q[0], k[0], rule, heads=range(heads), rows=range(LONG))
    mixed = weights @ v[0].repeat_interleave(heads // kv_heads, dim=0)
    assert (fused[0] - mixed).abs().max() < 1e-5


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("scale", [0.0, -0.7, 1.0])
def test_any_scale_may_be_set(scale: float, fused: bool) -> None:
    q, k, v = (part[None].double() for part in _causes(5, 1, N))
    rule = _rule(Causal(), 5, scale)
    weights = numpy_attention.stages(q[0].numpy(), k[0].numpy(), rule.scales, [MASKS["causal"][1]] * 5)[
        "weights"
    ]
    expected = weights @ v[0].numpy()
    assert abs(attend(q, k, v, rule, fused=fused)[0].numpy() - expected).max() < 1e-10


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", MASKS)
def test_padding_is_open_to_nobody(name: str, fused: bool) -> None:
    q, k, v = (part[None] for part in _causes(6, 2, N))
    real = torch.ones(1, N, dtype=torch.bool)
    real[0, 10:] = False
    rule = _rule(MASKS[name][0], 6)
    if name == "anticausal":
        real = real.flip(1)
    padded = attend(q, k, v, rule, real, fused=fused)
    changed = v.masked_fill(~real[:, None, :, None], 1e3)
    assert torch.equal(padded[:, :, real[0]], attend(q, k, changed, rule, real, fused=fused)[:, :, real[0]])
    assert padded.isfinite().all()


@pytest.mark.parametrize("size", [1e6, -1e6])
@pytest.mark.parametrize("mask", [Bidirectional(), Causal(), Window(2, 0)])
def test_huge_scores_stay_finite(size: float, mask: MaskRule) -> None:
    q, k, v = _causes(3, 3, N)
    q, k = torch.full_like(q, size), k.sign()
    rule = _rule(mask, 3, 1 / WIDTH)
    weights = attention(q, k, rule, heads=range(3), rows=range(N))
    assert attention(q, k, rule, heads=range(3), rows=range(N), stage="raw").abs().max() >= 1e6
    assert weights.isfinite().all()
    assert (weights.sum(-1) - 1).abs().max() < 1e-6
    for fused in (True, False):
        assert attend(q[None], k[None], v[None], rule, fused=fused).isfinite().all()


def test_half_precision_is_looked_at_in_fp32() -> None:
    q, k, _ = (part.bfloat16() for part in _causes(4, 2, N))
    rule = _rule(Causal(), 4)
    for stage in STAGES:
        found = attention(q, k, rule, heads=range(4), rows=range(N), stage=stage)
        exact = attention(q.float(), k.float(), rule, heads=range(4), rows=range(N), stage=stage)
        assert found.dtype == torch.float32
        assert torch.equal(found, exact)


def test_open_keys_is_one_table_where_heads_share_it() -> None:
    shared = open_keys(_rule(Causal(), 6), range(6), range(2, 5), range(N), "cpu")
    assert shared.shape == (1, 3, N)
    own = open_keys(_mixed_rule(6)[0], range(1, 4), range(2, 5), range(N), "cpu")
    assert own.shape == (3, 3, N)
    assert [int(table.sum()) for table in own] == [3 + 4 + 5, 11 + 10 + 9, 4 + 5 + 5]
