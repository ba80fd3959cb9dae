import cmath

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from model.config import Rope
from model.position import rotate, rotation

K = 10


def _rotated(x: Tensor, positions: list[int], base: float) -> Tensor:
    return rotate(x[None, None], rotation(Rope(base, K, 64), torch.tensor([positions]), x.dtype))[0, 0]


@pytest.mark.parametrize("base", [777.0, 1e5])
def test_planes_turn_by_their_angles(base: float) -> None:
    x = torch.randn(5, K, dtype=torch.float64)
    turned = _rotated(x, [0, 1, 2, 9, 60], base)
    for row, position in enumerate([0, 1, 2, 9, 60]):
        for plane in range(K // 2):
            angle = position * base ** (-2 * plane / K)
            expected = complex(x[row, plane], x[row, plane + K // 2]) * cmath.exp(1j * angle)
            assert complex(turned[row, plane], turned[row, plane + K // 2]) == pytest.approx(
                expected, abs=1e-12
            )


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 50))
def test_a_score_depends_on_the_distance_alone(query: int, key: int, by: int) -> None:
    q, k = torch.randn(2, 1, K, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def score(i: int, j: int) -> float:
        return float((_rotated(q, [i], 777.0) * _rotated(k, [j], 777.0)).sum())

    assert score(query, key) == pytest.approx(score(query + by, key + by), abs=1e-9)


def test_angles_are_as_exact_as_the_model_and_never_coarser_than_fp32() -> None:
    positions = torch.tensor([[4000]])
    half = rotation(Rope(1e4, K, 4096), positions, torch.bfloat16)
    exact = rotation(Rope(1e4, K, 4096), positions, torch.float64)
    assert half.cos.dtype == torch.bfloat16
    assert exact.cos.dtype == torch.float64
    assert (half.cos.double() - exact.cos).abs().max() < 2**-8
