"""How far a softmax has saturated, measured on rows of weights in fp64."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

# Below this a gradient is as good as none, as textbooks put it.
DEAD = 1e-6


def entropy(weights: Tensor) -> Tensor:
    """Entropy in nats of each row of weights [..., S]: [...]; from 0 (one key) to ln S (all alike)."""
    terms: Tensor = torch.special.xlogy(weights, weights)  # [..., S]
    return -terms.sum(dim=-1)  # [...]


def jacobian_norm(weights: Tensor) -> Tensor:
    """Frobenius norm of ∂softmax/∂scores = diag(p) - p pᵀ for each row p of weights [..., S]: [...].

    Near saturation 1 - p cancels, so 1 - p of the largest weight is the sum of the others: exact down to what
    fp64 holds.
    """
    largest, place = weights.max(dim=-1, keepdim=True)  # [..., 1]
    others = weights.scatter(-1, place, 0.0)  # [..., S]
    left = others.sum(dim=-1)  # [...]
    squares = others.square().sum(dim=-1)  # [...]
    largest_squared = largest[..., 0].square()  # [...]
    diagonal = largest_squared * left.square() + (others * (1 - others)).square().sum(dim=-1)  # [...]
    beside = 2 * largest_squared * squares + squares.square() - others.pow(4).sum(dim=-1)  # [...]
    return (diagonal + beside.clamp(min=0)).sqrt()  # [...]


def matrix_norms(weights: Tensor) -> Tensor:
    """The same norm of rows p of weights [N, S] from the whole matrices: [N].

    Rows of the matrix sum to 0, so the diagonal is minus the sum of what is beside it: no 1 - p cancels.
    """
    matrix = -weights[:, :, None] * weights[:, None, :]  # [N, S, S]
    matrix.diagonal(dim1=1, dim2=2).zero_()
    matrix.diagonal(dim1=1, dim2=2).copy_(-matrix.sum(dim=-1))
    norms: Tensor = torch.linalg.matrix_norm(matrix)  # [N]
    return norms


def other_measures(scores: np.ndarray) -> dict[str, np.ndarray]:
    """Of each row of scores [N, S]: entropy as ln Z - mean score, largest weight as 1 / Z, and others: [N].

    Z is the sum over keys of exp(score - largest score). Nothing here is shared with the functions above: a
    check holds one against the other.
    """
    below = scores - scores.max(axis=1, keepdims=True)  # [N, S]
    parts = np.exp(below)  # [N, S]
    total = parts.sum(axis=1)  # [N]
    weights = parts / total[:, None]  # [N, S]
    squares, cubes = (weights**2).sum(axis=1), (weights**3).sum(axis=1)  # [N] each
    # |diag(p) - p pᵀ|² = Σp² - 2Σp³ + (Σp²)²: sixteen digits, and DEAD² needs twelve.
    norms = np.sqrt(np.maximum(squares - 2 * cubes + squares**2, 0))  # [N]
    return {
        "entropy": np.log(total) - (weights * below).sum(axis=1),
        "largest_weight": 1 / total,
        "largest_score": np.abs(scores).max(axis=1),
        "dead": (norms < DEAD).astype(float),
    }


def factor_of(rule: str, d_k: int, own: float) -> float:
    """The number that a rule multiplies scores by."""
    return {"none": 1.0, "inv_sqrt": 1 / math.sqrt(d_k), "inv": 1 / d_k, "own": own}[rule]


def mean_norm(d_k: int) -> float:
    """The mean length of a vector of d_k components from N(0, 1), the mean of a chi distribution."""
    return math.sqrt(2) * math.exp(math.lgamma((d_k + 1) / 2) - math.lgamma(d_k / 2))


def mean_largest(keys: int) -> float:
    """The mean of the largest |z| of `keys` independent z from N(0, 1): ∫ 1 - P(|z| < x)^keys dx."""
    x = torch.linspace(0, 12, 6001, dtype=torch.float64)  # [X]
    below: Tensor = torch.special.erf(x / math.sqrt(2))  # [X]
    area: Tensor = torch.trapezoid(1 - below.pow(keys), x)
    return float(area)


def settled_from(widths: Sequence[int], values: Sequence[float], within: float) -> int:
    """The first width from which on all values are within the share `within` of the last one."""
    away = [
        width for width, value in zip(widths, values, strict=True) if abs(value / values[-1] - 1) > within
    ]
    return min(width for width in widths if width > max(away, default=0))
