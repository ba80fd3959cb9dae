"""Rotary position embedding: q and k rotated in planes by an angle proportional to the position."""

from typing import NamedTuple

import torch
from torch import Tensor

from model.config import Rope


class Rotation(NamedTuple):
    """Cosine and sine of every plane's angle at every position, each [B, 1, T, K/2]."""

    cos: Tensor
    sin: Tensor


def rotation(rope: Rope, positions: Tensor, head_width: int, dtype: torch.dtype) -> Rotation:
    """The rotation at `positions` [B, T]: plane i turns by position · base^(-2i/K) (Su et al. 2021, eq. 15).

    Angles are computed in fp32, as the models were trained, and in fp64 only for fp64 models.
    """
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    plane = torch.arange(0, head_width, 2, dtype=exact, device=positions.device)  # [K/2]
    frequency = 1.0 / rope.base ** (plane / head_width)  # [K/2]
    angle = positions[:, None, :, None].to(exact) * frequency  # [B, 1, T, K/2]
    return Rotation(angle.cos().to(dtype), angle.sin().to(dtype))


def rotate(x: Tensor, by: Rotation) -> Tensor:
    """Rotates x [B, H, T, K] in the planes (i, i + K/2), the half-split layout."""
    a, b = x.chunk(2, dim=-1)  # [B, H, T, K/2] each
    return torch.cat((a * by.cos - b * by.sin, b * by.cos + a * by.sin), dim=-1)  # [B, H, T, K]
