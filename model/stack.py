"""A block is x + Attention(x), then x + FFN(x); a stack is a column of blocks."""

from collections.abc import Mapping

from torch import Tensor, nn

from model.attention import Attention
from model.config import Rope, StackConfig
from model.ffn import FeedForward
from model.inputs import Inputs
from model.norms import build_norm
from model.position import Rotation, rotation
from model.recorder import Recorder
from model.rules import ScoreRule


class Block(nn.Module):
    """One layer. Pre-norm: x + f(norm x) (Xiong et al. 2020); post: norm(x + f(x)) (Vaswani et al. 2017)."""

    def __init__(self, site: str, config: StackConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm_placement == "pre"
        self.attention = Attention(site, config.width, config.attention)
        self.attention_norm = build_norm(config.norm, config.width)
        self.ffn = FeedForward(config.width, config.feed_forward)
        self.ffn_norm = build_norm(config.norm, config.width)

    def forward(
        self,
        x: Tensor,
        rule: ScoreRule,
        rotation: Rotation | None,
        real: Tensor | None,
        recorder: Recorder | None,
        *,
        fused: bool,
    ) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]."""
        if self.pre_norm:
            x = x + self.attention(self.attention_norm(x), rule, rotation, real, recorder, fused=fused)
            x = x + self.ffn(self.ffn_norm(x))
        else:
            x = self.attention_norm(x + self.attention(x, rule, rotation, real, recorder, fused=fused))
            x = self.ffn_norm(x + self.ffn(x))
        return x


class Stack(nn.Module):
    """L equal blocks, and a final norm where pre-norm blocks need one."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleList(Block(site, config) for site in config.sites)
        self.final_norm = build_norm(config.norm, config.width) if config.final_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        inputs: Inputs,
        rules: Mapping[str, ScoreRule],
        recorder: Recorder | None = None,
        *,
        fused: bool = True,
    ) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]; `rules` holds the score rule of every site."""
        turn = self._rotation(x, inputs)
        for layer, (site, block) in enumerate(zip(self.config.sites, self.blocks, strict=True)):
            if recorder is not None:
                recorder.keep_resid(self.config.name, layer, x)
            x = block(x, rules[site], turn, inputs.real, recorder, fused=fused)  # [B, T, D]
        if recorder is not None:
            recorder.keep_resid(self.config.name, self.config.layers, x)
        out: Tensor = self.final_norm(x)  # [B, T, D]
        return out

    def _rotation(self, x: Tensor, inputs: Inputs) -> Rotation | None:
        if not isinstance(self.config.position, Rope):
            return None
        return rotation(self.config.position, inputs.positions, self.config.attention.head_width, x.dtype)
