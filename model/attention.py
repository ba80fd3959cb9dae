"""Multi-head attention: project to q, k, v, place, score and mix, project back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from model.cache import Cache
from model.config import AttentionConfig
from model.linear import Linear
from model.norms import build_norm
from model.position import Rotation, rotate
from model.recorder import Recorder, Tap
from model.rules import ScoreRule
from model.scores import attend


@dataclass(frozen=True)
class SiteRun:
    """What one attention is told for one run.

    `real` [B, S] is False where a key is padding. `outputs` says which heads' outputs become "zero" or their
    "mean" over positions. `first` is the index of the first query, above 0 where a cache holds earlier ones.
    """

    site: str
    rule: ScoreRule
    rotation: Rotation | None = None
    real: Tensor | None = None
    outputs: Mapping[int, str] = field(default_factory=dict)
    recorder: Recorder | None = None
    cache: Cache | None = None
    first: int = 0
    cross: bool = False
    fused: bool = True
    tap: Tap | None = None


class Attention(nn.Module):
    """Concat(head_1 … head_H) W_O of head_h = softmax(q_h k_hᵀ · scale + mask) v_h (Vaswani et al. 2017).

    With kv_heads < heads, H/G query heads share each key and value head (Ainslie et al. 2023). Keys and
    values come from `memory` where there is one, which is cross-attention.
    """

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__()
        self.config = config
        query_width, key_width = config.heads * config.head_width, config.kv_heads * config.head_width
        self.q = Linear(width, query_width, bias=config.qkv_bias)
        self.k = Linear(width, key_width, bias=config.qkv_bias and not config.bare_keys)
        self.v = Linear(width, key_width, bias=config.qkv_bias)
        self.o = Linear(query_width, width, bias=config.out_bias)
        self.q_norm = build_norm(config.qk_norm, config.head_width) if config.qk_norm else None
        self.k_norm = build_norm(config.qk_norm, config.head_width) if config.qk_norm else None

    def forward(self, x: Tensor, run: SiteRun, memory: Tensor | None = None) -> Tensor:
        """Maps x [B, T, D] to [B, T, D], reading keys and values from x, or from memory [B, S, D]."""
        q = self._turned(self.q(x), self.q_norm, run.rotation)  # [B, H, T, K]
        k, v = self._keys_and_values(x if memory is None else memory, run)
        if run.recorder is not None:
            run.recorder.keep_attention(run.site, q, k, v, run.rule)
        mixed = attend(q, k, v, run.rule, run.real, first=run.first, fused=run.fused)  # [B, H, T, K]
        for head, output in run.outputs.items():
            mixed[:, head] = 0.0 if output == "zero" else mixed[:, head].mean(dim=1, keepdim=True)
        if run.tap is not None:
            run.tap.keep("head_out", mixed, "cross" if run.cross else "attention")
        out: Tensor = self.o(mixed.transpose(1, 2).flatten(2))  # [B, T, D]
        return out

    def contribution(self, head: int, value: Tensor) -> Tensor:
        """What a value vector v [..., K] of query head `head` adds to the stream at weight 1, [..., D]."""
        width = self.config.head_width
        columns = self.o.weight[:, head * width : (head + 1) * width]  # [D, K]
        return value @ columns.mT  # [..., D]

    def _keys_and_values(self, x: Tensor, run: SiteRun) -> tuple[Tensor, Tensor]:
        known = run.cache.find(run.site) if run.cache is not None and run.cross else None
        if known is not None:
            return known
        k = self._turned(self.k(x), self.k_norm, run.rotation)  # [B, G, S, K]
        v = self._split(self.v(x))  # [B, G, S, K]
        return (k, v) if run.cache is None else run.cache.extend(run.site, k, v)

    def _turned(self, x: Tensor, norm: nn.Module | None, rotation: Rotation | None) -> Tensor:
        x = self._split(x)  # [B, heads, T, K]
        if norm is not None:
            x = norm(x)
        return x if rotation is None else rotate(x, rotation)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], -1, self.config.head_width).transpose(1, 2)  # [B, heads, T, K]
