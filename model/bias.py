"""What a position adds to a score: biases that depend on how far a key is from a query."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Alibi:
    """A bias of -slope · |i - j| on the scores of each head (Press et al. 2022, section 3)."""

    slopes: tuple[float, ...]

    def at(self, heads: range, query: Tensor, key: Tensor) -> Tensor:
        """The bias of some heads for query positions [T] and key positions [S]: [H, T, S]."""
        distance = (query[:, None] - key[None, :]).abs()  # [T, S]
        slopes = torch.tensor(self.slopes[heads.start : heads.stop], dtype=torch.float64, device=key.device)
        return -slopes[:, None, None] * distance  # [H, T, S]


class RelativeBias(nn.Module):
    """T5's trained bias a head and bucket of distance (Raffel et al. 2020, section 2.1).

    Half of the buckets hold one distance each, the other half ranges that grow logarithmically up to
    `max_distance`; where queries look both ways, each direction has half of all.
    """

    def __init__(self, heads: int, buckets: int, max_distance: int, *, both_ways: bool) -> None:
        super().__init__()
        self.buckets, self.max_distance, self.both_ways = buckets, max_distance, both_ways
        self.table = nn.Parameter(torch.zeros(buckets, heads))

    def at(self, heads: range, query: Tensor, key: Tensor) -> Tensor:
        """The bias of some heads for query positions [T] and key positions [S]: [H, T, S]."""
        bucket = self.bucket(key[None, :] - query[:, None])  # [T, S]
        return self.table[:, heads.start : heads.stop][bucket].permute(2, 0, 1)  # [H, T, S]

    def bucket(self, offset: Tensor) -> Tensor:
        """The bucket of each offset key - query."""
        buckets, first = self.buckets, torch.zeros_like(offset)
        if self.both_ways:
            buckets //= 2
            first = (offset > 0) * buckets
            distance = offset.abs()
        else:
            distance = (-offset).clamp(min=0)
        exact = buckets // 2
        # The logarithm is taken in fp32, as the models were trained: a bucket's edge can depend on it.
        ratio = torch.log(distance.float().clamp(min=1) / exact) / math.log(self.max_distance / exact)
        wide = (exact + (ratio * (buckets - exact)).long()).clamp(max=buckets - 1)
        return first + torch.where(distance < exact, distance, wide)


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """The slopes 2^(-8/n), 2^(-16/n) … of n heads (Press et al. 2022, section 3).

    Where n is no power of two, the authors' code takes those of the next lower power, then every other one of
    the next higher.
    """
    below = 2 ** math.floor(math.log2(heads))
    slopes = [2.0 ** (-8.0 * (i + 1) / below) for i in range(below)]
    between = [2.0 ** (-8.0 * (i + 1) / (2 * below)) for i in range(0, 2 * below, 2)]
    return tuple((slopes + between)[:heads])
