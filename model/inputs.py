"""What a forward runs on."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Inputs:
    """A batch of token ids [B, T], their segments [B, T] or None, and `real` [B, T], False at padding."""

    ids: Tensor
    segments: Tensor | None = None
    real: Tensor | None = None

    @classmethod
    def of(
        cls, ids: Sequence[int], segments: Sequence[int] | None = None, device: str | torch.device = "cpu"
    ) -> "Inputs":
        """One unpadded sequence as a batch of one."""
        rows = None if segments is None else torch.tensor([list(segments)], device=device)
        return cls(torch.tensor([list(ids)], dtype=torch.long, device=device), rows)

    @property
    def tokens(self) -> int:
        """Length T of the sequences."""
        return self.ids.shape[1]

    @property
    def positions(self) -> Tensor:
        """Position of each token [B, T], counted from the first real one, so that padding moves nobody."""
        if self.real is None:
            return torch.arange(self.tokens, device=self.ids.device)[None]  # [1, T]
        return (self.real.cumsum(dim=1) - 1).clamp(min=0)  # [B, T]
