"""A trace: the causes of one run's attention, from which any head, row and stage is computed on demand."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model.rules import ScoreRule
from model.scores import Stage, attention


@dataclass(frozen=True)
class SiteTrace:
    """What one attention site used: q [H, T, K], k [G, S, K] after rotation, v [G, S, K], its score rule."""

    site: str
    q: Tensor
    k: Tensor
    v: Tensor
    rule: ScoreRule

    @property
    def heads(self) -> int:
        """Number of query heads H."""
        return self.q.shape[0]

    @property
    def queries(self) -> int:
        """Number of query positions T."""
        return self.q.shape[1]

    @property
    def keys(self) -> int:
        """Number of key positions S."""
        return self.k.shape[1]

    @property
    def all_heads(self) -> range:
        """Every query head."""
        return range(self.heads)

    def attention(
        self, heads: range, rows: range, stage: Stage = "weights", keys: range | None = None
    ) -> Tensor:
        """Attention of some heads, rows and keys at one stage, [H, T, S]; see `scores.attention`."""
        return attention(self.q, self.k, self.rule, heads=heads, rows=rows, keys=keys, stage=stage)

    def key_head(self, head: int) -> int:
        """The key/value head that query head `head` reads."""
        return head // (self.heads // self.k.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.q.nbytes + self.k.nbytes + self.v.nbytes


@dataclass(frozen=True)
class Trace:
    """One run: its attention sites, and `final` [T, D], the last hidden state after any final norm.

    `logits` [len(logit_positions), V] are there where the model has that readout; `resid` maps (stack, layer)
    to the stream [T, D] before block `layer` (layer = L: after the last block) where the run recorded it.
    """

    sites: Mapping[str, SiteTrace]
    resid: Mapping[tuple[str, int], Tensor]
    final: Tensor
    logits: Tensor | None
    logit_positions: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Number of tokens that ran."""
        return self.final.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        tensors = [self.final, *self.resid.values(), *([] if self.logits is None else [self.logits])]
        return sum(site.nbytes for site in self.sites.values()) + sum(tensor.nbytes for tensor in tensors)

    @property
    def finite(self) -> bool:
        """Whether the run ended in finite numbers."""
        ends = [self.final, *([] if self.logits is None else [self.logits])]
        return all(bool(torch.isfinite(end).all()) for end in ends)
