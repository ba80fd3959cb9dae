"""The position-wise feed-forward layer: expand, non-linearity, project."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from model.config import Activation, FeedForwardConfig
from model.linear import Linear
from model.recorder import Tap


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": F.silu,
}

# Positions expanded at once on a CPU. Each position is independent, so this bounds the widest temporary of a
# long forward and keeps it in the cache.
POSITIONS = 256


class FeedForward(nn.Module):
    """Down(act(up x)), or down(act(gate x) · up x) where gated (Vaswani et al. 2017, eq. 2; Shazeer 2020)."""

    def __init__(self, width: int, config: FeedForwardConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.up = Linear(width, config.width, bias=config.bias)
        self.gate = Linear(width, config.width, bias=config.bias) if config.gated else None
        self.down = Linear(config.width, width, bias=config.bias)

    def forward(self, x: Tensor, tap: Tap | None = None) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]."""
        recording = tap is not None and (tap.wants("ffn_pre") or tap.wants("ffn_act"))
        short = x.shape[:-1].numel() <= POSITIONS
        if short or x.device.type != "cpu" or x.requires_grad or recording:
            return self._positions(x, tap)  # [B, T, D]
        out = x.new_empty(x.shape)  # [B, T, D]
        # Flat, since torch multiplies a slice of a batch by a slower routine.
        flat, flat_out = x.flatten(0, 1), out.view(-1, x.shape[-1])  # [B·T, D]
        for start in range(0, len(flat), POSITIONS):
            some = slice(start, start + POSITIONS)
            flat_out[some] = self._positions(flat[some])
        return out

    def _positions(self, x: Tensor, tap: Tap | None = None) -> Tensor:
        """Maps x [..., D] to [..., D]."""
        hidden: Tensor = self.up(x) if self.gate is None else self.gate(x)  # [..., F]
        if tap is not None:
            tap.keep("ffn_pre", hidden)
        hidden = self.activation(hidden)
        if self.gate is not None:
            hidden = hidden * self.up(x)
        if tap is not None:
            tap.keep("ffn_act", hidden)
        out: Tensor = self.down(hidden)  # [..., D]
        return out
