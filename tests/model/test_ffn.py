import math

import pytest
import torch
from torch import Tensor

from model.config import Activation, FeedForwardConfig
from model.ffn import ACTIVATIONS, POSITIONS, FeedForward

FORMULAS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + math.exp(-x)),
}


def _built(config: FeedForwardConfig) -> FeedForward:
    torch.manual_seed(0)
    return FeedForward(6, config).double().requires_grad_(requires_grad=False)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas(name: Activation) -> None:
    x = torch.linspace(-6, 6, 49, dtype=torch.float64)
    expected = torch.tensor([FORMULAS[name](value) for value in x.tolist()], dtype=torch.float64)
    torch.testing.assert_close(ACTIVATIONS[name](x), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_formula(gated: bool, bias: bool) -> None:
    built = _built(FeedForwardConfig(9, "relu", gated=gated, bias=bias))
    x = torch.randn(1, 5, 6, dtype=torch.float64)

    def affine(name: str, x: Tensor) -> Tensor:
        part = getattr(built, name)
        assert (part.bias is not None) == bias
        return x @ part.weight.T + (part.bias if bias else 0)

    hidden = affine("gate", x).clamp(min=0) * affine("up", x) if gated else affine("up", x).clamp(min=0)
    torch.testing.assert_close(built(x), affine("down", hidden))


def test_long_inputs_are_the_same_position_by_position() -> None:
    built = _built(FeedForwardConfig(9, "silu", gated=True, bias=True))
    x = torch.randn(2, 2 * POSITIONS + 3, 6, dtype=torch.float64)
    whole = built(x)
    assert whole.shape == x.shape
    for place in (0, POSITIONS - 1, POSITIONS, 2 * POSITIONS, 2 * POSITIONS + 2):
        torch.testing.assert_close(whole[:, place : place + 1], built(x[:, place : place + 1]))
