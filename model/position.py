"""Rotary position embedding: q and k rotated in planes by an angle proportional to the position."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from model.config import Llama3Scaling, Rope


class Rotation(NamedTuple):
    """Cosine and sine of every plane's angle at every position, each [B, 1, T, P] for P planes."""

    cos: Tensor
    sin: Tensor


def rotation(rope: Rope, positions: Tensor, dtype: torch.dtype) -> Rotation:
    """The rotation at `positions` [B, T]: plane i turns by position · base^(-2i/2P) (Su et al. 2021, eq. 15).

    Angles are computed in fp32, as the models were trained, and in fp64 only for fp64 models.
    """
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    plane = torch.arange(0, rope.width, 2, dtype=exact, device=positions.device)  # [P]
    frequency = 1.0 / rope.base ** (plane / rope.width)  # [P]
    if rope.scaling is not None:
        frequency = _slowed(frequency, rope.scaling)
    angle = positions[:, None, :, None].to(exact) * frequency  # [B, 1, T, P]
    return Rotation(angle.cos().to(dtype), angle.sin().to(dtype))


def rotate(x: Tensor, by: Rotation) -> Tensor:
    """Rotates x [B, H, T, K] in the planes (i, i + P), i < P, the half-split layout; the rest stays."""
    planes = by.cos.shape[-1]
    a, b, rest = torch.split(x, [planes, planes, x.shape[-1] - 2 * planes], dim=-1)  # [B, H, T, P] twice
    turned = (a * by.cos - b * by.sin, b * by.cos + a * by.sin)
    return torch.cat((*turned, rest) if rest.shape[-1] else turned, dim=-1)  # [B, H, T, K]


def _slowed(frequency: Tensor, scaling: Llama3Scaling) -> Tensor:
    """Frequencies [P] for longer texts: slow planes by 1/factor, with a linear passage to the fast ones."""
    turns = frequency * scaling.original / (2 * math.pi)  # within the original length
    fast = ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0, 1)  # [P]
    return frequency * (fast + (1 - fast) / scaling.factor)
