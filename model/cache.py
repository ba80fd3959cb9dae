"""Keys and values of the tokens that ran before, so that generation runs each token once."""

import torch
from torch import Tensor


class Cache:
    """The keys and values of one sequence, by site. It grows with every run it is passed to."""

    def __init__(self) -> None:
        self.tokens = 0
        self._kept: dict[str, tuple[Tensor, Tensor]] = {}

    def extend(self, site: str, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values of a self-attention [B, G, S, K], the new ones [B, G, T, K] last."""
        if site in self._kept:
            old_k, old_v = self._kept[site]
            k, v = torch.cat((old_k, k), dim=2), torch.cat((old_v, v), dim=2)  # [B, G, S, K] each
        self._kept[site] = k, v
        return k, v

    def find(self, site: str) -> tuple[Tensor, Tensor] | None:
        """The keys and values of a cross-attention, which do not change once its encoder ran."""
        return self._kept.get(site)

    @property
    def numbers(self) -> int:
        """How many numbers it keeps."""
        return sum(k.numel() + v.numel() for k, v in self._kept.values())
