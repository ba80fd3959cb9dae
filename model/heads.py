"""From the last hidden state to a prediction: token logits, or one vector for the whole text."""

import torch.nn.functional as F
from torch import Tensor, nn

from model.config import HeadConfig
from model.ffn import ACTIVATIONS
from model.norms import build_norm


class TokenHead(nn.Module):
    """Logits over the vocabulary: x E^T (+ bias), after BERT's transform where the config has one."""

    def __init__(self, width: int, vocabulary: int, config: HeadConfig) -> None:
        super().__init__()
        self.projection = nn.Linear(width, vocabulary, bias=config.bias)
        self.activation = None
        if config.transform is not None:
            activation, norm = config.transform
            self.dense = nn.Linear(width, width)
            self.activation = ACTIVATIONS[activation]
            self.norm = build_norm(norm, width)

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [B, T, D] to logits [B, T, V]."""
        if self.activation is not None:
            x = self.norm(self.activation(self.dense(x)))  # [B, T, D]
        logits: Tensor = self.projection(x)  # [B, T, V]
        return logits


def sentence_vector(final: Tensor) -> Tensor:
    """Mean of the token outputs [T, D], normalised to length 1: [D] (Reimers and Gurevych 2019)."""
    return F.normalize(final.mean(dim=0), dim=0)
