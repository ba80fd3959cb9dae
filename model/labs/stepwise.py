"""Norms of d output_T / d input_t once more, from written-out formulas: autograd is held against them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from model.labs.nets import Net, Recurrent, SelfAttention

# Steps back from the end, and how many of them at once: memory stays small.
MOST_STEPS, CHUNK = 100, 32

Step = Callable[[Tensor, Tensor], Tensor]


def by_steps(kind: Net, net: nn.Module, x: Tensor) -> Tensor:
    """What `by_distance` gives for LSTM or GRU, as products of single steps' Jacobians, x [1, T, D]: [T].

    Each Jacobian is autograd's of one step that is written out here; only the last `MOST_STEPS` + 1 positions
    are told. (Hochreiter and Schmidhuber 1997; Cho et al. 2014; gates in the order that torch keeps.)
    """
    assert isinstance(net, Recurrent)
    step, width = (_lstm if kind == "LSTM" else _gru)(net), x.shape[-1]
    size = 2 * width if kind == "LSTM" else width
    outputs, states = net(x)[0].detach(), [x.new_zeros(size)]
    for one, output in zip(x[0], outputs, strict=True):
        # The net's own state goes on: of a chaotic net two ways of rounding would soon be two paths.
        states.append(torch.cat([output, step(states[-1], one)[width:]]))
    count = min(len(x[0]), MOST_STEPS + 1)
    before, read = torch.stack(states[:-1])[-count:], x[0][-count:]  # [T, S], [T, D]
    across, inward = vmap(jacrev(step, argnums=(0, 1)), chunk_size=CHUNK)(
        before, read
    )  # [T, S, S], [T, S, D]
    product, found = torch.eye(width, size, dtype=x.dtype), []  # the output is the state's first part
    for back, into in zip(across.flip(0), inward.flip(0), strict=True):
        found.append((product @ into).norm())
        product = product @ back  # [D, S]
    return torch.stack(found)  # [T]


def _parts(net: Recurrent, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """What input and state send to all gates, [gates · D] each."""
    named = {name: weight.detach() for name, weight in net.layer.named_parameters()}
    inner = named["weight_ih_l0"] @ x + named["bias_ih_l0"]
    return inner, named["weight_hh_l0"] @ h + named["bias_hh_l0"]


def _lstm(net: Recurrent) -> Step:
    def step(state: Tensor, x: Tensor) -> Tensor:
        h, c = state.chunk(2)
        i, f, g, o = (sum(_parts(net, x, h), torch.zeros(()))).chunk(4)
        kept = f.sigmoid() * c + i.sigmoid() * g.tanh()  # [D]
        return torch.cat([o.sigmoid() * kept.tanh(), kept])  # [2 D]

    return step


def _gru(net: Recurrent) -> Step:
    def step(h: Tensor, x: Tensor) -> Tensor:
        (r, z, n), (r_h, z_h, n_h) = (part.chunk(3) for part in _parts(net, x, h))
        keep = (z + z_h).sigmoid()
        new = (n + (r + r_h).sigmoid() * n_h).tanh()  # [D]
        return (1 - keep) * new + keep * h

    return step


def of_attention(net: nn.Module, x: Tensor) -> Tensor:
    """What `by_distance` gives for self-attention, by hand: a_s (W_O W_V + W_O (v_s - v̄) (W_Kᵀ q)ᵀ/√D), [T].

    v̄ = Σ a_s v_s is the mixture. The last position asks, too: there W_O Σ a_s v_s (k_s - k̄)ᵀ W_Q/√D is added.
    """
    assert isinstance(net, SelfAttention)
    read, scale = x[0], x.shape[-1] ** -0.5
    w = {name: weight.detach() for name, weight in net.named_parameters()}
    k, v = (read @ w[f"{name}.weight"].T + w[f"{name}.bias"] for name in "kv")  # [T, D]
    q = w["q.weight"] @ read[-1] + w["q.bias"]  # [D]
    a = torch.softmax(k @ q * scale, dim=0)  # [T]
    apart = v - a @ v  # [T, D]
    turned = torch.einsum("sd,e->sde", apart @ w["o.weight"].T, w["k.weight"].T @ q * scale)  # [T, D, D]
    jacobian = a[:, None, None] * (w["o.weight"] @ w["v.weight"] + turned)  # [T, D, D]
    asked = w["o.weight"] @ torch.einsum("s,sd,se->de", a, v, k - a @ k) @ w["q.weight"] * scale  # [D, D]
    jacobian[-1] += asked
    norms: Tensor = jacobian.flatten(1).norm(dim=1).flip(0)  # [T]
    return norms
