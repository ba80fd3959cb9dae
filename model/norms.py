"""Normalisation over the model width."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import LayerNorm, Norm


class LayerNormLayer(nn.Module):
    """(x - mean) / sqrt(var + eps) · gain + bias over the last axis (Ba et al. 2016)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [..., D] to [..., D]."""
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class RMSNormLayer(nn.Module):
    """x / sqrt(mean(x²) + eps) · gain over the last axis (Zhang and Sennrich 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [..., D] to [..., D]."""
        return F.rms_norm(x, self.gain.shape, self.gain, self.eps)


def build_norm(norm: Norm, width: int) -> LayerNormLayer | RMSNormLayer:
    """The layer that `norm` describes, for vectors of `width`."""
    if isinstance(norm, LayerNorm):
        return LayerNormLayer(width, norm.eps)
    return RMSNormLayer(width, norm.eps)
