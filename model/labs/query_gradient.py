"""The gradient that reaches a query through softmax: factor · Kᵀ (diag(p) - p pᵀ) g, of a gradient g at p.

Given q, its scores are |q| z with z from N(0, 1), and keys spread independently of them across q. So with
r = (diag(p) - p pᵀ) g the norm of Kᵀ r is exactly that of (z·r, |r| χ), χ of d_k - 1 degrees of freedom:
it is drawn from that instead of from keys × d_k components.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.labs.parameters.scaling import SoftmaxGradient

WIDTHS = [2**power for power in range(15)]
Squares = dict[int, Tensor]


@dataclass(frozen=True)
class Draws:
    """Random rows: z and g [N, S]; squared lengths of q, and of χ, by degrees of freedom, [N] each."""

    z: Tensor
    upstream: Tensor
    q: Squares
    across: Squares


def draw(parameters: SoftmaxGradient) -> Draws:
    """All that is random: a row's numbers at one d_k are continued at the next."""
    rows, keys, own = parameters.rows, parameters.keys, parameters.d_k
    random = np.random.default_rng(parameters.seed)
    z, upstream = torch.from_numpy(random.normal(size=(2, rows, keys)))  # [N, S] each
    for_q, for_across = random.spawn(2)
    q = _chi_squares(for_q, rows, WIDTHS, own)
    across = _chi_squares(for_across, rows, [width - 1 for width in WIDTHS], own - 1)
    return Draws(z, upstream, q, across)


def _chi_squares(random: np.random.Generator, rows: int, freedoms: list[int], own: int) -> Squares:
    """Growing sums of squares of normal numbers, [N] at each of `freedoms` and at `own`."""
    sums, last = {0: np.zeros(rows)}, 0
    for freedom in freedoms:
        if freedom > last:
            sums[freedom] = sums[last] + random.chisquare(freedom - last, rows)  # [N]
            last = freedom
    if own not in sums:
        # Divides a step that is drawn already, so that the other widths stay what they are.
        below, above = max(one for one in sums if one < own), min(one for one in sums if one > own)
        share = random.beta((own - below) / 2, (above - own) / 2, rows)  # [N]
        sums[own] = sums[below] + share * (sums[above] - sums[below])  # [N]
    return {freedom: torch.from_numpy(total) for freedom, total in sums.items()}


def norms(drawn: Draws, width: int, factor: float) -> Tensor:
    """Norm of the gradient at q of every row, [N]."""
    weights = (factor * drawn.q[width].sqrt()[:, None] * drawn.z).softmax(dim=-1)  # [N, S]
    inner = at_scores(weights, drawn.upstream)  # [N, S]
    along = (inner * drawn.z).sum(dim=-1).square()  # [N]
    across = inner.square().sum(dim=-1) * drawn.across[width - 1]  # [N]
    return factor * (along + across).sqrt()


def at_scores(weights: Tensor, upstream: Tensor) -> Tensor:
    """(diag(p) - p pᵀ) g of p and g [N, S]: p ⊙ (g - p·g)."""
    # A constant in g changes nothing; less g at the largest weight, a saturated row keeps its digits.
    g = upstream - upstream.gather(-1, weights.argmax(dim=-1, keepdim=True))  # [N, S]
    return weights * (g - (weights * g).sum(dim=-1, keepdim=True))


def by_autograd(q: Tensor, keys: Tensor, upstream: Tensor, factor: float) -> Tensor:
    """∂L/∂q [N, K] of L = upstream · softmax(factor · keys q): q [N, K], keys [N, S, K], upstream [N, S]."""
    asked = q.detach().clone().requires_grad_()  # [N, K]
    with torch.enable_grad():
        weights = (factor * (keys @ asked[:, :, None])[:, :, 0]).softmax(dim=-1)  # [N, S]
        (reached,) = torch.autograd.grad((weights * upstream).sum(), asked)  # [N, K]
    return reached


def shown_by_autograd(drawn: Draws, width: int, factor: float) -> Tensor:
    """What `norms` gives, [N], by autograd through a softmax over q and keys that have these lengths.

    Two components are enough: one along q, whose product with it is |q| z, and one across it, where χ is.
    """
    lengths, rows = drawn.q[width].sqrt(), torch.arange(len(drawn.z))  # [N] each
    # Against g at the largest weight, which changes nothing, a saturated row keeps its digits here as well.
    upstream = drawn.upstream - drawn.upstream[rows, drawn.z.argmax(dim=-1)][:, None]  # [N, S]
    with torch.enable_grad():
        scores = (factor * lengths[:, None] * drawn.z).requires_grad_()  # [N, S]
        (inner,) = torch.autograd.grad((scores.softmax(dim=-1) * upstream).sum(), scores)  # [N, S]
    length = inner.norm(dim=-1, keepdim=True)  # [N, 1]
    across = drawn.across[width - 1].sqrt()[:, None] * torch.where(length > 0, inner / length, 0.0)  # [N, S]
    q = torch.stack([lengths, torch.zeros_like(lengths)], dim=-1)  # [N, 2]
    keys = torch.stack([drawn.z, across], dim=-1)  # [N, S, 2]
    norms: Tensor = by_autograd(q, keys, upstream, factor).norm(dim=-1)  # [N]
    return norms


def drawn_in_full(parameters: SoftmaxGradient, rows: int, factor: float) -> Tensor:
    """The norm of other rows, by autograd, whose q and keys are drawn component by component: [rows]."""
    generator = torch.Generator().manual_seed(parameters.seed)
    shapes = [(parameters.d_k,), (parameters.keys, parameters.d_k), (parameters.keys,)]
    q, keys, upstream = (
        torch.randn(rows, *shape, generator=generator, dtype=torch.float64) for shape in shapes
    )  # [N, K], [N, S, K], [N, S]
    norms: Tensor = by_autograd(q, keys, upstream, factor).norm(dim=-1)  # [N]
    return norms
