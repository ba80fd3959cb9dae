"""Vectors turned to positions by the models' own rotation, and what theory says of it (Su et al. 2021)."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from model.config import Llama3Scaling, Rope
from model.errors import InputError
from model.labs.parameters.rope import RopeLab
from model.position import rotate, rotation


@dataclass(frozen=True)
class Turning:
    """A rotation of K components in K/2 planes; linear scaling divides positions by `slower`."""

    rope: Rope
    slower: float = 1.0
    interleaved: bool = False

    @classmethod
    def of(cls, parameters: RopeLab) -> "Turning":
        """The rotation that the parameters describe. Raises InputError for what cannot be rotated."""
        _refuse(parameters)
        scaling = None
        if parameters.scaling == "llama3":
            scaling = Llama3Scaling(parameters.factor, parameters.low, parameters.high, parameters.original)
        rope = Rope(parameters.base, parameters.d_k, parameters.original, scaling)
        slower = parameters.factor if parameters.scaling == "linear" else 1.0
        return cls(rope, slower, parameters.layout == "interleaved")

    def at(self, x: Tensor, positions: Tensor | int) -> Tensor:
        """Vector x [K] turned to each of `positions` [N] or to one: [N, K] or [K], in fp64."""
        places = torch.as_tensor(positions, dtype=torch.float64).reshape(1, -1) / self.slower  # [1, N]
        by = rotation(self.rope, places, torch.float64)
        rows = x.double().expand(1, 1, places.shape[1], -1)  # [1, 1, N, K]
        if self.interleaved:
            # The layout of Su et al. 2021, eq. 34: neighbours make a plane, here as one complex number.
            pairs = torch.view_as_complex(rows.reshape(*rows.shape[:-1], -1, 2).contiguous())  # [1, 1, N, P]
            turned = torch.view_as_real(pairs * torch.complex(by.cos, by.sin)).flatten(-2)  # [1, 1, N, K]
        else:
            turned = rotate(rows, by)  # [1, 1, N, K]
        return turned[0, 0, 0] if isinstance(positions, int) else turned[0, 0]

    @cached_property
    def speeds(self) -> Tensor:
        """Radians a position that each plane turns, by the published formulas: [K/2]."""
        width, base = self.rope.width, self.rope.base
        plain = [base ** (-2 * i / width) / self.slower for i in range(width // 2)]
        scaling = self.rope.scaling
        return torch.tensor(
            plain if scaling is None else [_slowed(speed, scaling) for speed in plain], dtype=torch.float64
        )

    def wavelengths(self) -> Tensor:
        """Positions that each plane takes for a turn, measured between positions 0 and 1: [K/2]."""
        x, y = self.planes_of(
            self.at(self.planes_to(torch.ones(self.rope.width // 2, dtype=torch.float64)), 1)
        )
        return 2 * math.pi / torch.atan2(y, x)  # [K/2]

    def planes_of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The two coordinates of x [..., K] in each plane, [..., K/2] both."""
        if self.interleaved:
            return x[..., 0::2], x[..., 1::2]
        first, second = x.chunk(2, dim=-1)  # [..., K/2] twice
        return first, second

    def planes_to(self, first: Tensor) -> Tensor:
        """The vector [K] that has `first` [K/2] as first coordinates, and zeros as second ones."""
        zeros = torch.zeros_like(first)
        return (
            torch.stack((first, zeros), dim=-1).flatten() if self.interleaved else torch.cat((first, zeros))
        )

    def closed_score(self, q: Tensor, k: Tensor, distances: Tensor) -> Tensor:
        """q·k after turning, by the distances m - n [...] alone: Re Σ q̂ · conj(k̂) · exp(i (m - n) ω)."""
        products = torch.complex(*self.planes_of(q)) * torch.complex(*self.planes_of(k)).conj()  # [K/2]
        phases = distances.double()[..., None] * self.speeds  # [..., K/2]
        return (products * torch.polar(torch.ones_like(phases), phases)).sum(-1).real

    def partial_sums(self, distances: Tensor) -> Tensor:
        """Σ |S_j| at distances [N], S_j the sum of the first j planes' e^(i (m-n) ω): [N].

        Su et al. 2021, section 3.4.3, eq. 37.
        """
        phases = distances.double()[:, None] * self.speeds  # [N, K/2]
        return torch.polar(torch.ones_like(phases), phases).cumsum(-1).abs().sum(-1)  # [N]

    def decay(self, distances: Tensor) -> Tensor:
        """Σ |S_j| relative to distance 0, where it is 1 + 2 + … + K/2: [N]."""
        planes = self.rope.width // 2
        return self.partial_sums(distances) / (planes * (planes + 1) / 2)  # [N]

    def bound(self, q: Tensor, k: Tensor, distances: Tensor) -> Tensor:
        """What no score of q and k [K] exceeds at distances [N]: max |h_{i+1} - h_i| Σ |S_j|, h_{K/2} = 0.

        Su et al. 2021, section 3.4.3, eq. 36 and 37; h_i is the product of q and k in plane i.
        """
        h = torch.complex(*self.planes_of(q)) * torch.complex(*self.planes_of(k)).conj()  # [K/2]
        steps = torch.cat((h, h.new_zeros(1))).diff().abs().max()
        return steps * self.partial_sums(distances)  # [N]


def _slowed(speed: float, scaling: Llama3Scaling) -> float:
    """Llama 3.1's rule by wavelengths, as its authors published it in code."""
    wavelength = 2 * math.pi / speed
    if wavelength < scaling.original / scaling.high:
        return speed
    if wavelength > scaling.original / scaling.low:
        return speed / scaling.factor
    smooth = (scaling.original / wavelength - scaling.low) / (scaling.high - scaling.low)
    return (1 - smooth) * speed / scaling.factor + smooth * speed


def _refuse(parameters: RopeLab) -> None:
    if parameters.d_k % 2:
        raise InputError(
            f"d_k is {parameters.d_k}, but components are turned in planes of two: choose an even width."
        )
    if parameters.scaling == "llama3" and not 0 < parameters.low < parameters.high:
        raise InputError(
            f"llama3 slows planes by and by between low = {parameters.low:g} and high = {parameters.high:g} "
            "turns: choose a low above 0 and a greater high."
        )
