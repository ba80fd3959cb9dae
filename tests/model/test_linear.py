"""The linear layer gives the same by either library, and gradients where they are asked for."""

import pytest
import torch
import torch.nn.functional as F

from model import linear
from model.linear import NUMBERS, Linear


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "shape", [(1, 1, 24), (1, 700, 24), (3, 40, 24), (2, 2, 90, 24), (700, 24), (1, 0, 24)]
)
def test_it_is_the_product(shape: tuple[int, ...], *, bias: bool) -> None:
    layer = Linear(24, 40, bias=bias)
    x = torch.randn(*shape)
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), atol=1e-5, rtol=0)


def test_input_and_weight_may_be_views_of_something_else() -> None:
    layer = Linear(24, 40)
    x = torch.randn(24, 700).T
    with torch.inference_mode():
        layer.weight = torch.nn.Parameter(torch.randn(24, 80)[:, ::2].T, requires_grad=False)
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), atol=1e-5, rtol=0)


def test_large_products_take_the_faster_library(monkeypatch: pytest.MonkeyPatch) -> None:
    if linear._ONEDNN is None:
        pytest.skip("this torch has no oneDNN")
    asked: list[int] = []

    def counted(x: torch.Tensor, *rest: object) -> torch.Tensor:
        asked.append(x.shape[0])
        return torch.zeros(x.shape[0], 64)

    monkeypatch.setattr(linear, "_ONEDNN", counted)
    layer, rows = Linear(8, 64), NUMBERS // 64
    with torch.inference_mode():
        layer(torch.ones(rows - 1, 8))
        layer(torch.ones(rows, 8))
        layer.double()(torch.ones(rows, 8, dtype=torch.float64))
    assert asked == [rows]


def test_a_torch_without_it_multiplies_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "_ONEDNN", None)
    layer, x = Linear(24, 40), torch.randn(700, 24)
    with torch.inference_mode():
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_gradients_flow() -> None:
    layer, x = Linear(24, 40), torch.randn(700, 24, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, layer.weight.sum(dim=0).expand(700, 24))
