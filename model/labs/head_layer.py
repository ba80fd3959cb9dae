"""One layer of a run, taken apart by head: patterns, and what each head adds to the stream."""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from model.attention import Attention
from model.labs.reading import Ran
from model.stack import Block


@dataclass(frozen=True)
class HeadLayer:
    """Layer `index` of a run that recorded "head_out" and "attn_out"."""

    ran: Ran
    index: int

    @property
    def site(self) -> str:
        """The name of the layer's attention."""
        return self.ran.loaded.config.stack.self_sites[self.index]

    @property
    def attention(self) -> Attention:
        """The layer's attention."""
        return self.ran.loaded.transformer.attention_at(self.site)

    @cached_property
    def patterns(self) -> Tensor:
        """All heads' weights, [H, T, T]."""
        site = self.ran.trace.sites[self.site]
        return site.attention(site.all_heads, range(site.queries)).float().cpu()  # [H, T, T]

    @cached_property
    def contributions(self) -> Tensor:
        """What each head adds to every token's vector, [H, T, D]."""
        mixed = self.ran.trace.kept["head_out/attention"][self._place]  # [H, T, K]
        return self._through_output(mixed)

    @cached_property
    def lengths(self) -> Tensor:
        """Lengths of the contributions, [H, T]."""
        lengths: Tensor = self.contributions.norm(dim=2)
        return lengths  # [H, T]

    @cached_property
    def out(self) -> Tensor:
        """What the attention wrote into the stream, as the run recorded it, [T, D]."""
        return self.ran.trace.kept["attn_out"][self._place].float().cpu()

    @property
    def norm_follows(self) -> bool:
        """Whether a norm stands between the sum and the stream."""
        return self._block.placement == "both"

    def written(self, total: Tensor) -> Tensor:
        """What a sum of contributions [T, D] comes to in the stream, with any bias and norm."""
        if self.attention.config.out_bias:
            total = total + self.attention.o.bias.float().cpu()
        if not self.norm_follows:
            return total
        norm = self._block.get_submodule("attention_out_norm")
        out: Tensor = norm(total.to(next(norm.parameters()))).float().cpu()
        return out  # [T, D]

    def missing(self, total: Tensor) -> float:
        """How far a sum of contributions [T, D] is from the layer's output, as a share of its length."""
        share = (self.written(total) - self.out).norm() / self.out.norm()
        return float(share)

    def difference(self) -> float:
        """The largest difference between the sum of all contributions and the layer's output."""
        return (self.written(self.contributions.sum(dim=0)) - self.out).abs().max().item()

    def with_one_pattern(self) -> Tensor:
        """The sum of contributions [T, D] if all heads had to share one pattern, their mean."""
        site = self.ran.trace.sites[self.site]
        values = site.v.repeat_interleave(site.heads // len(site.v), dim=0)  # [H, T, K]
        shared = self.patterns.mean(dim=0).to(values)  # [T, T]
        return self._through_output(shared @ values).sum(dim=0)

    def thumbnails(self, size: int) -> Tensor:
        """All patterns, max-pooled to at most `size` a side: [H, size, size]."""
        return F.adaptive_max_pool2d(self.patterns, min(size, self.patterns.shape[1]))

    @property
    def _block(self) -> Block:
        block = self.ran.loaded.transformer.stack.blocks[self.index]
        assert isinstance(block, Block)
        return block

    @property
    def _place(self) -> tuple[str, int]:
        return self.ran.loaded.config.stack.name, self.index

    def _through_output(self, mixed: Tensor) -> Tensor:
        parts = [self.attention.contribution(head, values).float() for head, values in enumerate(mixed)]
        return torch.stack(parts).cpu()  # [H, T, D]
