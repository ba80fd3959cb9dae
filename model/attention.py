"""Multi-head attention: project to q, k, v, place, score and mix, project back."""

from torch import Tensor, nn

from model.config import AttentionConfig
from model.position import Rotation, rotate
from model.recorder import Recorder
from model.rules import ScoreRule
from model.scores import attend


class Attention(nn.Module):
    """Concat(head_1 … head_H) W_O of head_h = softmax(q_h k_hᵀ · scale + mask) v_h (Vaswani et al. 2017).

    With kv_heads < heads, H/G query heads share each key and value head (Ainslie et al. 2023).
    """

    def __init__(self, site: str, width: int, config: AttentionConfig) -> None:
        super().__init__()
        self.site, self.config = site, config
        query_width, key_width = config.heads * config.head_width, config.kv_heads * config.head_width
        self.q = nn.Linear(width, query_width, bias=config.qkv_bias)
        self.k = nn.Linear(width, key_width, bias=config.qkv_bias)
        self.v = nn.Linear(width, key_width, bias=config.qkv_bias)
        self.o = nn.Linear(query_width, width, bias=config.out_bias)

    def forward(
        self,
        x: Tensor,
        rule: ScoreRule,
        rotation: Rotation | None = None,
        real: Tensor | None = None,
        recorder: Recorder | None = None,
        *,
        fused: bool = True,
    ) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]; `real` [B, T] is False at padding."""
        q, k, v = self._split(self.q(x)), self._split(self.k(x)), self._split(self.v(x))  # [B, H or G, T, K]
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        if recorder is not None:
            recorder.keep_attention(self.site, q, k, v, rule)
        mixed = attend(q, k, v, rule, real, fused=fused)  # [B, H, T, K]
        out: Tensor = self.o(mixed.transpose(1, 2).flatten(2))  # [B, T, D]
        return out

    def contribution(self, head: int, value: Tensor) -> Tensor:
        """What a value vector v [..., K] of query head `head` adds to the stream at weight 1, [..., D]."""
        width = self.config.head_width
        columns = self.o.weight[:, head * width : (head + 1) * width]  # [D, K]
        return value @ columns.mT  # [..., D]

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], -1, self.config.head_width).transpose(1, 2)  # [B, heads, T, K]
