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

    `logits` [len(logit_positions), V] are there where the model has that readout. `kept` maps what the run
    was asked to record (see `recorder.Recordable`) to tensors by (stack, layer): "resid" is the stream [T, D]
    before block `layer` (layer = L: after the last block). `memory` [S, D] is what an encoder made of its
    input, beside a decoder.
    """

    sites: Mapping[str, SiteTrace]
    kept: Mapping[str, Mapping[tuple[str, int], Tensor]]
    final: Tensor
    logits: Tensor | None
    logit_positions: tuple[int, ...]
    memory: Tensor | None = None

    @property
    def tokens(self) -> int:
        """Number of tokens that ran."""
        return self.final.shape[0]

    @property
    def resid(self) -> Mapping[tuple[str, int], Tensor]:
        """The stream between blocks, empty where it was not recorded."""
        return self.kept.get("resid", {})

    @property
    def kept_tensors(self) -> list[Tensor]:
        """Every recorded tensor."""
        return [tensor for tensors in self.kept.values() for tensor in tensors.values()]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        kept = [tensor for tensor in (self.logits, self.memory) if tensor is not None]
        tensors = [self.final, *self.kept_tensors, *kept]
        return sum(site.nbytes for site in self.sites.values()) + sum(tensor.nbytes for tensor in tensors)

    @property
    def finite(self) -> bool:
        """Whether the run ended in finite numbers."""
        ends = [self.final, *([] if self.logits is None else [self.logits])]
        return all(bool(torch.isfinite(end).all()) for end in ends)
