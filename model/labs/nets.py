"""The nets that the labs on recurrence compare: one layer each that reads a whole sequence."""

from typing import Literal

import torch
from torch import Tensor, nn

from model.rules import Bidirectional, Causal, MaskRule, ScoreRule
from model.scores import attend

Net = Literal["RNN", "LSTM", "GRU", "self-attention", "causal attention"]
RECURRENT: tuple[Net, ...] = ("RNN", "LSTM", "GRU")
ATTENDING: tuple[Net, ...] = ("self-attention", "causal attention")
NETS: tuple[Net, ...] = RECURRENT + ATTENDING

# Weights per unit of width²: W_xh and W_hh for each gate, or W_Q, W_K, W_V and W_O.
MATRICES: dict[Net, int] = {"RNN": 2, "LSTM": 8, "GRU": 6, "self-attention": 4, "causal attention": 4}

# From the beginning of the same random numbers inputs would repeat the first weights.
APART = 2**31


class Recurrent(nn.Module):
    """One recurrent layer (Elman 1990; Hochreiter and Schmidhuber 1997; Cho et al. 2014), as torch has it."""

    def __init__(self, kind: Net, width: int) -> None:
        super().__init__()
        layer = {"RNN": nn.RNN, "LSTM": nn.LSTM, "GRU": nn.GRU}[kind]
        self.layer: nn.RNNBase = layer(width, width, batch_first=True)

    def weights(self, which: Literal["ih", "hh"]) -> nn.Parameter:
        """W_xh or W_hh, the gates' one below another, [gates · D, D]."""
        return self.layer.get_parameter(f"weight_{which}_l0")

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [B, T, D] to the state after each position, [B, T, D]."""
        states: Tensor = self.layer(x)[0]
        return states


class SelfAttention(nn.Module):
    """One layer of attention with one head: softmax(QKᵀ/√d)V W_O (Vaswani et al. 2017, equation 1)."""

    def __init__(self, width: int, mask: MaskRule, *, fused: bool = False) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.rule = ScoreRule((width**-0.5,), (mask,))
        self.fused = fused

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]."""
        q, k, v = (part(x)[:, None] for part in (self.q, self.k, self.v))  # [B, 1, T, D]
        mixed: Tensor = self.o(attend(q, k, v, self.rule, fused=self.fused)[:, 0])  # [B, T, D]
        return mixed


def build(kind: Net, width: int, seed: int, *, fused: bool = False) -> nn.Module:
    """A net of random weights in float64: U(±1/√D), as torch starts each of these layers.

    `fused` lets attention run in torch's fused kernel, which is fast, and hides its products from a count.
    """
    masks: dict[str, MaskRule] = {"self-attention": Bidirectional(), "causal attention": Causal()}
    net = SelfAttention(width, masks[kind], fused=fused) if kind in masks else Recurrent(kind, width)
    return started(net.double(), width**-0.5, seed)


def open_gates(net: nn.Module, bias: float) -> None:
    """Adds `bias` to the gate that keeps the old state: the forget gate of an LSTM, the update gate of a GRU.

    Torch keeps the gates' biases one after another: i, f, g, o of an LSTM and r, z, n of a GRU.
    """
    if isinstance(net, Recurrent) and not isinstance(net.layer, nn.RNN):
        width = net.layer.hidden_size
        with torch.no_grad():
            net.layer.get_parameter("bias_hh_l0")[width : 2 * width] += bias


def started(net: nn.Module, bound: float, seed: int) -> nn.Module:
    """The net with each parameter drawn from U(±bound), by numbers of its own: others' are not disturbed."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    return net


def inputs(batch: int, length: int, width: int, seed: int) -> Tensor:
    """Standard normal inputs [B, T, D] in float64, which have nothing to do with weights of the same seed."""
    generator = torch.Generator().manual_seed((seed + APART) % 2**32)
    return torch.randn(batch, length, width, generator=generator, dtype=torch.float64)
