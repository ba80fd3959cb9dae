"""A table of positions taken apart: cosines, principal components, periods."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Table:
    """Rows [N, D] in fp64, one a position. `left_out` first ones stay out of PCA and Fourier transform."""

    rows: Tensor
    left_out: int

    @cached_property
    def unit(self) -> Tensor:
        """The rows at length 1, [N, D]."""
        unit: Tensor = self.rows / self.rows.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        return unit

    @cached_property
    def centred(self) -> Tensor:
        """The rows that are analysed, less their mean: [N', D]."""
        return self.rows[self.left_out :] - self.mean

    @cached_property
    def mean(self) -> Tensor:
        """The mean of the rows that are analysed, [D]."""
        return self.rows[self.left_out :].mean(0)

    @cached_property
    def components(self) -> tuple[Tensor, Tensor]:
        """Every row along the principal components [N', R], and the share of variance of each [R]."""
        u, s, _ = torch.linalg.svd(self.centred, full_matrices=False)
        return u * s, s.square() / s.square().sum()

    @cached_property
    def spectrum(self) -> Tensor:
        """Share of the variance along positions at each number of turns 0 … N'/2, all dimensions together."""
        return spectrum(self.centred)


def spectrum(rows: Tensor) -> Tensor:
    """Share of power of rows [N, D] at 0 … N/2 turns over their length: [N // 2 + 1]."""
    power = torch.fft.rfft(rows, dim=0).abs().square().sum(-1)  # [N // 2 + 1]
    # Every frequency but 0 and N/2 stands for its negative too.
    power[1 : (len(rows) + 1) // 2] *= 2
    share: Tensor = power / (len(rows) * rows.square().sum())
    return share


def slow_share(power: Tensor) -> float:
    """The share of variance in the slowest tenth of frequencies."""
    return power[1 : max(2, len(power) // 10)].sum().item()


def peaks(power: Tensor) -> Tensor:
    """Where power [N] at 1 … N turns is greater than on either side, greatest first, five at most.

    One turn in the whole table is no period but a trend: it never comes back, and is left out.
    """
    padded = torch.nn.functional.pad(power, (1, 1), value=-1.0)
    peak = (power > padded[:-2]) & (power > padded[2:])  # [N]
    peak[0] = False
    return (power * peak).argsort(descending=True)[: min(5, int(peak.sum()))]
