import pytest
import torch

from model.config import LayerNorm, Norm, RMSNorm
from model.norms import LayerNormLayer, RMSNormLayer, build_norm

X = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3 + 1


def _drawn(norm: Norm) -> LayerNormLayer | RMSNormLayer:
    built = build_norm(norm, 8).double()
    for number, parameter in enumerate(built.parameters()):
        parameter.data = torch.linspace(0.5, 2.0 + number, 8, dtype=torch.float64)
    return built.requires_grad_(requires_grad=False)


@pytest.mark.parametrize("eps", [1e-12, 0.5])
def test_layer_norm_is_its_formula(eps: float) -> None:
    built = _drawn(LayerNorm(eps))
    assert isinstance(built, LayerNormLayer)
    centred = X - X.mean(-1, keepdim=True)
    expected = centred / ((centred**2).mean(-1, keepdim=True) + eps).sqrt() * built.gain + built.bias
    torch.testing.assert_close(built(X), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("eps", [1e-12, 0.5])
def test_rms_norm_is_its_formula(eps: float) -> None:
    built = _drawn(RMSNorm(eps))
    assert isinstance(built, RMSNormLayer)
    expected = X / ((X**2).mean(-1, keepdim=True) + eps).sqrt() * built.gain
    torch.testing.assert_close(built(X), expected, atol=1e-12, rtol=0)
