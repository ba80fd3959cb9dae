"""Norms of d output_T / d input_t: by autograd, by products of Jacobians, and as theory has them."""

import torch
from torch import Tensor, nn

from model.labs.nets import Recurrent, SelfAttention


def by_distance(net: nn.Module, x: Tensor) -> Tensor:
    """‖d output_T / d input_t‖, the Frobenius norm, of x [1, T, D], at distances 0, 1 … T - 1: [T]."""
    # Sequence i of the batch is asked for component i of the last output: one backward gives all rows.
    copies = x.repeat(x.shape[-1], 1, 1).requires_grad_()  # [D, T, D]
    last = net(copies)[:, -1]  # [D, D]
    (jacobian,) = torch.autograd.grad(last.diagonal().sum(), copies)  # [D, T, D]
    norms: Tensor = jacobian.transpose(0, 1).flatten(1).norm(dim=1)  # [T]
    return norms.flip(0)


def by_products(net: nn.Module, x: Tensor) -> Tensor:
    """What `by_distance` gives for an RNN, as products: diag(1 - h_T²) W_hh … diag(1 - h_t²) W_xh, [T]."""
    assert isinstance(net, Recurrent)
    slopes: Tensor = 1 - net(x.repeat(x.shape[-1], 1, 1)).detach() ** 2  # [D, T, D], of tanh
    across, inward = net.weights("hh").detach(), net.weights("ih").detach()
    product, found = torch.eye(x.shape[-1], dtype=x.dtype), []
    for slope in slopes.unbind(dim=1)[::-1]:
        product = product * slope  # [D, D]
        found.append((product @ inward).norm())
        product = product @ across
    return torch.stack(found)  # [T]


def mean_field(net: nn.Module, x: Tensor, norms: Tensor) -> Tensor:
    """The RNN's norm by distance if each step multiplied it by √(D · Var(W_hh) · mean slope²): [T].

    Poole et al. 2016, section 3: what a matrix of independent entries does on average to a vector's length.
    """
    assert isinstance(net, Recurrent)
    slopes: Tensor = 1 - net(x)[0].detach() ** 2  # [T, D]
    variance = net.weights("hh").detach().square().mean()
    factor = (x.shape[-1] * variance * slopes.square().mean()).sqrt()
    return norms[0] * factor ** torch.arange(len(norms), dtype=norms.dtype)  # [T]


def shared_evenly(net: nn.Module, length: int) -> float:
    """‖W_O W_V‖ / n, what each input would get from an attention that looks at all n alike."""
    assert isinstance(net, SelfAttention)
    return float((net.o.weight @ net.v.weight).detach().norm()) / length
