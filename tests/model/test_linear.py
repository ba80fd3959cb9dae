"""The linear layer gives the same by either library, and gradients where they are asked for."""

import pytest
import torch
import torch.nn.functional as F

from model import linear
from model.linear import PRODUCTS, PRODUCTS_BY_SMALL, SMALL_WEIGHT, Linear


# A weight of 512 × 300 numbers, and as many rows as make either library the faster one.
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "shape", [(1, 1, 512), (1, 70, 512), (3, 40, 512), (2, 2, 30, 512), (70, 512), (1, 0, 512)]
)
def test_it_is_the_product(shape: tuple[int, ...], *, bias: bool) -> None:
    layer = Linear(512, 300, bias=bias)
    x = torch.randn(*shape)
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), atol=1e-5, rtol=0)


def test_input_and_weight_may_be_views_of_something_else() -> None:
    layer = Linear(512, 300)
    x = torch.randn(512, 70).T
    with torch.inference_mode():
        layer.weight = torch.nn.Parameter(torch.randn(512, 600)[:, ::2].T / 20, requires_grad=False)
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), atol=1e-5, rtol=0)


def test_large_products_take_the_faster_library(monkeypatch: pytest.MonkeyPatch) -> None:
    if linear._ONEDNN is None:
        pytest.skip("this torch has no oneDNN")
    asked: list[int] = []

    def counted(x: torch.Tensor, weight: torch.Tensor, *rest: object) -> torch.Tensor:
        asked.append(x.shape[0])
        return torch.zeros(x.shape[0], weight.shape[0])

    monkeypatch.setattr(linear, "_ONEDNN", counted)
    small, large = Linear(256, SMALL_WEIGHT // 256), Linear(256, SMALL_WEIGHT // 256 + 1)
    rows, many = (-(-n // w.weight.numel()) for n, w in ((PRODUCTS, large), (PRODUCTS_BY_SMALL, small)))
    with torch.inference_mode():
        small(torch.ones(many - 1, 256))
        small(torch.ones(many, 256))
        large(torch.ones(rows - 1, 256))
        large(torch.ones(rows, 256))
        large.double()(torch.ones(rows, 256, dtype=torch.float64))
    assert asked == [many, rows]


def test_a_torch_without_it_multiplies_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "_ONEDNN", None)
    layer, x = Linear(512, 300), torch.randn(70, 512)
    with torch.inference_mode():
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_gradients_flow() -> None:
    layer, x = Linear(512, 300), torch.randn(70, 512, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, layer.weight.sum(dim=0).expand(70, 512))
