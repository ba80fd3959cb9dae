"""What a forward runs on."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Inputs:
    """A batch of token ids [B, T], their segments [B, T] or None, and `real` [B, T], False at padding.

    An encoder–decoder model's ids are the target's; its encoder reads `source`, or `mel` [B, M, 2S] for
    speech.
    """

    ids: Tensor
    segments: Tensor | None = None
    real: Tensor | None = None
    source: "Inputs | None" = None
    mel: Tensor | None = None

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
    def source_tokens(self) -> int:
        """Length S of what the encoder makes of its input, 0 where there is none."""
        if self.mel is not None:
            return self.mel.shape[2] // 2
        return 0 if self.source is None else self.source.tokens

    @property
    def positions(self) -> Tensor:
        """Position of each token [B, T], counted from the first real one, so that padding moves nobody."""
        if self.real is None:
            return torch.arange(self.tokens, device=self.ids.device)[None]  # [1, T]
        return (self.real.cumsum(dim=1) - 1).clamp(min=0)  # [B, T]
