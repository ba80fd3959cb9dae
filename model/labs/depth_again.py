"""A few layers of a deep random stack computed once more, without the model's code and without autograd."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.labs.depth_theory import is_set
from model.labs.parameters.block import Depth
from model.labs.result import Check

HEAD_WIDTH, EPS, LAYERS, STEP = 8, 1e-5, 4, 1e-6
# Finite differences of fp64: their step squared and rounding over it, and some kinks of ReLU on the way.
SLOPE, ROUNDING = 1e-3, 1e-9


@dataclass(frozen=True)
class Again:
    """The largest relative differences from scales and gradients, the largest difference from likeness.

    None where a number left its range.
    """

    scale: float | None
    gradient: float | None
    sameness: float | None


def again(
    settings: Depth,
    weights: Sequence[Mapping[str, Tensor]],
    streams: Sequence[Tensor],
    gradients: Sequence[Tensor],
    drawn: tuple[Sequence[float], Sequence[float], Sequence[float]],
) -> Again:
    """Compares sampled layers of one stack, streams and gradients [T, D] before each and at the end.

    `drawn` are scale, gradient and likeness by depth. The stream after a layer is computed by formula. The
    gradient's norm before it is the slope of that formula along the gradient's own direction.
    """
    scales, slopes, alike = [], [], []
    for layer in sorted({round(i * (settings.depth - 1) / (LAYERS - 1)) for i in range(LAYERS)}):
        x, one = streams[layer], weights[layer]
        after = _block(settings, one, x)
        scales.append(_relative(drawn[0][layer + 1], after.square().mean().sqrt().item()))
        slopes.append(
            _relative(drawn[1][layer], drawn[1][layer + 1] * _slope(settings, one, x, gradients, layer))
        )
        alike.append(abs(drawn[2][layer + 1] - _alike(after)))
    return Again(_worst(scales), _worst(slopes), _worst(alike))


def again_checks(name: str, runs: Sequence[Again]) -> list[Check]:
    """The comparisons of all stacks, the worst of them; nothing of what left the range of numbers."""
    found = []
    for what, part, tolerance, about in (
        ("rms by the block's formula, largest relative difference", "scale", ROUNDING, "activation"),
        ("gradient by finite differences, largest relative difference", "gradient", SLOPE, "gradient"),
        ("likeness by another formula, largest difference", "sameness", ROUNDING, "sameness"),
    ):  # fmt: skip
        values = [getattr(run, part) for run in runs]
        known = [value for value in values if value is not None]
        if known:
            found.append(Check(f"{name}: {what}", 0.0, max(known), tolerance, "<=", about=about))
    return found


def _block(settings: Depth, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """One block by its formula, x [T, D]."""
    if settings.parts == "both":
        x = _wired(settings, lambda y: _attention(weights, y), x)
    return _wired(settings, lambda y: _ffn(weights, y), x)


def _wired(settings: Depth, part: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    kept = x if settings.residual else torch.zeros_like(x)
    if is_set(settings):
        return _norm(settings, kept + part(x))
    return kept + part(_norm(settings, x))


def _norm(settings: Depth, x: Tensor) -> Tensor:
    if settings.norm == "none":
        return x
    x = x - x.mean(dim=-1, keepdim=True) if settings.norm == "layer" else x
    return x * (x.square().mean(dim=-1, keepdim=True) + EPS).rsqrt()


def _attention(weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    q, k, v = (
        (x @ weights[f"attention.{name}.weight"].T).view(len(x), -1, HEAD_WIDTH).unbind(1) for name in "qkv"
    )
    heads = [
        torch.softmax(a @ b.T / math.sqrt(HEAD_WIDTH), dim=-1) @ c for a, b, c in zip(q, k, v, strict=True)
    ]
    return torch.cat(heads, dim=-1) @ weights["attention.o.weight"].T  # [T, D]


def _ffn(weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    up = x @ weights["ffn.up.weight"].T  # [T, F]
    return up.clamp(min=0) @ weights["ffn.down.weight"].T  # [T, D]


def _slope(
    settings: Depth, weights: Mapping[str, Tensor], x: Tensor, gradients: Sequence[Tensor], layer: int
) -> float:
    """‖gradient before the layer‖ over that after it, as (g₁/‖g₁‖) · ∂ block / ∂ (g₀/‖g₀‖).

    NaN where two sizes of step disagree: a saturated softmax jumps within the smallest that rounding allows.
    """
    back, coming = (g / g.abs().max() for g in gradients[layer : layer + 2])
    back, coming = back / back.norm(), coming / coming.norm()

    def slope(step: float) -> float:
        ahead, behind = (_block(settings, weights, x + sign * step * x.norm() * back) for sign in (1, -1))
        return float(((ahead - behind) * coming).sum() / (2 * step * x.norm()))

    small, large = slope(STEP), slope(2 * STEP)
    return small if abs(small - large) <= SLOPE / 2 * abs(small) else math.nan


def _alike(x: Tensor) -> float:
    """Mean cosine between different tokens: (‖Σ u‖² - T) / T(T - 1) for their directions u, x [T, D]."""
    tokens = len(x)
    x = x / x.abs().amax(dim=-1, keepdim=True)
    total = torch.nn.functional.normalize(x, dim=-1).sum(dim=0)
    return float((total.square().sum() - tokens) / (tokens * (tokens - 1)))


def _relative(drawn: float, found: float) -> float:
    return abs(drawn - found) / abs(found) if found else float(drawn != 0)


def _worst(values: Sequence[float]) -> float | None:
    known = [value for value in values if math.isfinite(value)]
    return max(known) if known else None
