"""What theory says of sinusoidal positions (Vaswani et al. 2017, section 3.5), and whether it holds."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from model.embeddings import waves
from model.labs.result import Check
from model.labs.words import signed

# The steps whose dot products are always held against the formula.
STEPS = (1, 7, 50)


@dataclass(frozen=True)
class Sinusoid:
    """Encodings of `width` dimensions, an even number, as the models here compute them."""

    width: int
    base: float

    def at(self, first: int, count: int) -> Tensor:
        """PE(first) … PE(first + count - 1), [T, D] in fp64."""
        places = torch.arange(first, first + count)[None]  # [1, T]
        return waves(places, self.width, interleaved=True, base=self.base)[0]  # [T, D]

    @cached_property
    def speeds(self) -> list[float]:
        """By how many radians each pair turns a step, base^(-2i/D): the formula, in plain Python."""
        return [self.base ** (-2 * pair / self.width) for pair in range(self.width // 2)]

    @cached_property
    def wavelengths(self) -> Tensor:
        """2π over the angle that is measured between positions 0 and 1, pair by pair: [D/2]."""
        step = self.at(1, 1)[0]  # [D]
        return 2 * math.pi / torch.atan2(step[0::2], step[1::2])  # [D/2]

    def dot(self, step: int) -> float:
        """PE(p) · PE(p + k) by sin a sin b + cos a cos b = cos(a - b) in each pair: Σ cos(k ω)."""
        return math.fsum(math.cos(step * speed) for speed in self.speeds)

    def turned(self, encoding: Tensor, step: int) -> Tensor:
        """R(k) PE: every (sine, cosine) of PE [..., D] turned by k · ω. R knows k, but not the position."""
        angle = torch.tensor([step * speed for speed in self.speeds], dtype=torch.float64)  # [D/2]
        sine, cosine = encoding[..., 0::2], encoding[..., 1::2]  # [..., D/2]
        forward = sine * angle.cos() + cosine * angle.sin()
        sideways = cosine * angle.cos() - sine * angle.sin()
        return torch.stack((forward, sideways), dim=-1).flatten(-2)  # [..., D]


def checks(wave: Sinusoid, length: int, pair: int, offset: int) -> list[Check]:
    """Norm, wavelengths, dot products and rotation, each at all of the first `length` positions."""
    table, half = wave.at(0, length), wave.width / 2
    norm = farthest(table.square().sum(-1), half)
    expected = [2 * math.pi * wave.base ** (2 * i / wave.width) for i in range(wave.width // 2)]
    off = max(abs(a / b - 1) for a, b in zip(wave.wavelengths.tolist(), expected, strict=True))
    return [
        Check("‖PE‖² = d/2 at every position", half, norm, 1e-9, about="matrix"),
        Check(
            f"wavelength of pair {pair}", expected[pair], wave.wavelengths[pair].item(),
            1e-9 * expected[pair], about="wavelengths",
        ),
        Check(
            "every wavelength by its formula, less 1, largest", 0.0, off, 1e-9, about="wavelengths"
        ),
        *[_dot(wave, length, step) for step in dict.fromkeys((*STEPS, offset))],
        _rotation(wave, length, offset),
    ]  # fmt: skip


def _both(wave: Sinusoid, length: int, step: int) -> tuple[Tensor, Tensor]:
    """PE(p) and PE(p + step), [T, D] both, from the first p on for which neither is below 0."""
    first = max(0, -step)
    return wave.at(first, length), wave.at(first + step, length)


def _dot(wave: Sinusoid, length: int, step: int) -> Check:
    """At the position where the dot product is farthest from the formula, so that it holds at all of them."""
    expected, (here, there) = wave.dot(step), _both(wave, length, step)
    # Sines of angles up to 4096 radians in fp64, d/2 of them: far below this.
    name = f"PE(p) · PE({_plus(step)}) at every p"
    return Check(name, expected, farthest((here * there).sum(-1), expected), 1e-8, about="dots")


def _rotation(wave: Sinusoid, length: int, step: int) -> Check:
    here, there = _both(wave, length, step)
    off = (wave.turned(here, step) - there).abs().max().item()
    name = f"R({signed(step)}) PE(p) less PE({_plus(step)}) at every p, largest"
    return Check(name, 0.0, off, 1e-9, about="rotation")


def _plus(step: int) -> str:
    return f"p {'−' if step < 0 else '+'} {abs(step)}"


def farthest(values: Tensor, expected: float) -> float:
    """The one of `values` that is farthest from what is expected of all."""
    return values[(values - expected).abs().argmax()].item()
