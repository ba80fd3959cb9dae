"""How q·k of independent components from N(0, 1) is distributed: exactly, and as the normal it tends to."""

import math

import torch
from torch import Tensor

# Points of |q| over which the exact distribution is summed, and standard deviations that they reach.
LENGTHS, REACH = 4000, 9.0


def normal(x: Tensor, d_k: int) -> Tensor:
    """P(score < x) under N(0, d_k), for x [X]: [X]."""
    below: Tensor = torch.special.ndtr(x / math.sqrt(d_k))  # [X]
    return below


def exact(x: Tensor, d_k: int) -> Tensor:
    """P(q·k < x) for x [X]: [X]. Given q it is N(0, |q|²), and |q| is chi with d_k degrees."""
    centre = math.sqrt(d_k)
    start = max(0.0, centre - REACH)
    step = (centre + REACH - start) / LENGTHS
    length = start + step * (torch.arange(LENGTHS, dtype=torch.float64) + 0.5)  # [R]
    share = ((d_k - 1) * length.log() - length.square() / 2).softmax(dim=0)  # [R]
    below: Tensor = torch.special.ndtr(x[:, None] / length)  # [X, R]
    return below @ share  # [X]


def gap(sample: Tensor, points: Tensor, below: Tensor) -> float:
    """Largest |share of `sample` below x - `below`| over points x [X]: Kolmogorov's statistic."""
    found = torch.searchsorted(sample.sort().values, points) / len(sample)  # [X]
    return float((found - below).abs().max())
