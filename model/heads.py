"""From the last hidden state to a prediction: token logits, or one vector for the whole text."""

import torch.nn.functional as F
from torch import Tensor, nn

from model.config import HeadConfig
from model.ffn import ACTIVATIONS
from model.linear import Linear
from model.norms import build_norm
from model.scores import soft_cap


class TokenHead(nn.Module):
    """Logits over the vocabulary: x E^T (+ bias), after BERT's transform where the config has one."""

    def __init__(self, width: int, vocabulary: int, config: HeadConfig) -> None:
        super().__init__()
        own = config.width or width
        self.softcap, self.scale = config.softcap, config.scale
        self.projection = Linear(own, vocabulary, bias=config.bias)
        self.activation = None
        if config.transform is not None:
            activation, norm = config.transform
            self.dense = Linear(width, own)
            self.activation = ACTIVATIONS[activation]
            self.norm = build_norm(norm, own)

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [B, T, D] to logits [B, T, V]."""
        if self.scale is not None:
            x = x * self.scale
        if self.activation is not None:
            x = self.norm(self.activation(self.dense(x)))  # [B, T, D]
        logits: Tensor = self.projection(x)  # [B, T, V]
        return logits if self.softcap is None else soft_cap(logits, self.softcap)


def sentence_vector(final: Tensor) -> Tensor:
    """Mean of the token outputs [T, D], normalised to length 1: [D] (Reimers and Gurevych 2019)."""
    return F.normalize(final.mean(dim=0), dim=0)
