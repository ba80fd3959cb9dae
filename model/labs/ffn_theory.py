"""Feed-forward layers once more: how silent they are by integrals, and their loss by formula."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model.ffn import FeedForward
from model.labs.result import Check, Line

# What is told by its size: below this share of the hidden layer's rms a number counts as silent.
SILENT = 0.01
# Places on the normal curve, in its standard deviations, over which is summed.
REACH, PLACES, CROWDING = 8.0, 4001, 10.0
FINE = 1e-3


@dataclass(frozen=True)
class LastStep:
    """The last training step that is drawn: weights before it, its inputs [N, D], the task [2, D, D]."""

    name: str
    weights: Mapping[str, Tensor]
    x: Tensor
    task: Tensor


def trained_check(last: LastStep, line: Line) -> Check:
    """The last loss that is drawn, against the same step in fp64 from the formulas of layer and task."""
    x, first, second = last.x.double(), *last.task.double()
    w = {name.removesuffix(".weight"): weight.double() for name, weight in last.weights.items()}
    up = x @ w["up"].T  # [N, F]
    hidden = {
        "ReLU": lambda: up.clamp(min=0),
        "GELU": lambda: _gelu(up),
        "SwiGLU": lambda: _silu(x @ w["gate"].T) * up,
    }[last.name]()
    wanted = torch.einsum("nd,kd->nk", x, first) * torch.einsum("nd,kd->nk", x, second)  # [N, D]
    loss = (hidden @ w["down"].T - wanted).square().mean().item()
    drawn = float(list(line.y)[-1] or 0)
    name = f"{last.name}: last loss in the picture, by the formulas"
    return Check(name, loss, drawn, 1e-4 * loss, about="training")


def silent_checks(name: str, layer: FeedForward, row: Mapping[str, object], count: int) -> list[Check]:
    """The shares of neurons at 0 and nearly silent, in percent, for normal inputs, against integrals.

    An input through weights w is normal with variance ‖w‖². Shares of `count` inputs scatter as those of
    independent numbers, and as much again since the neurons of one input hang together.
    """
    spread = layer.up.weight.detach().double().norm(dim=1)  # [F]
    # Places are densest at 0, where a closed gate silences whatever it is multiplied with.
    t = torch.linspace(-CROWDING, CROWDING, PLACES, dtype=torch.float64)
    z = REACH * t.sinh() / math.sinh(CROWDING)
    mass = torch.exp(-z.square() / 2) * t.cosh()
    mass = mass / mass.sum()  # [P]
    if layer.gate is None:
        values = _function(name)(spread[:, None] * z)  # [F, P]
        limit = SILENT * (values.square() @ mass).mean().sqrt()
        quiet = ((values.abs() < limit).double() @ mass).mean().item()
    else:
        quiet = _quiet_gate(layer, spread, z, mass)
    zero = 0.5 if name == "ReLU" else 0.0
    return [
        _share(f"{name}: exactly 0, %", zero, row["exactly 0, %"], len(spread) * count),
        _share(f"{name}: nearly silent, %", quiet, row["nearly silent, %"], len(spread) * count),
    ]


def _quiet_gate(layer: FeedForward, spread: Tensor, z: Tensor, mass: Tensor) -> float:
    """SiLU(g) u for two normal numbers that hang together by the angle of their weights."""
    assert layer.gate is not None
    gate, up = layer.gate.weight.detach().double(), layer.up.weight.detach().double()
    scale = gate.norm(dim=1)  # [F]
    rho = (gate * up).sum(dim=1) / (scale * spread)
    g = _silu(scale[:, None] * z)  # [F, P]
    middle = (rho * spread)[:, None] * z  # of u, given the gate
    rest = (spread * (1 - rho.square()).sqrt())[:, None]
    rms = ((g.square() * (middle.square() + rest.square())) @ mass).mean().sqrt()
    bound = SILENT * rms / g.abs().clamp(min=1e-300)
    below = torch.special.ndtr((bound - middle) / rest) - torch.special.ndtr((-bound - middle) / rest)
    return float((below @ mass).mean())


def _share(name: str, expected: float, measured: object, count: int) -> Check:
    assert isinstance(measured, float)
    # The integral's own steps, and GELUs that fp32 rounds to 0, are finer than this floor.
    error = math.sqrt(2 * expected * (1 - expected) / count) if 0 < expected < 1 else 0.0
    return Check(name, 100 * expected, measured, 100 * (5 * error + FINE), about="hidden")


def _function(name: str) -> Callable[[Tensor], Tensor]:
    return _gelu if name == "GELU" else lambda x: x.clamp(min=0)


def _gelu(x: Tensor) -> Tensor:
    out: Tensor = x * torch.special.ndtr(x)
    return out


def _silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))
