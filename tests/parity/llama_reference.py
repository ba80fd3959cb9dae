"""LLaMA in plain fp64 NumPy, a loop a head and row, from the papers; `transformers` casts to fp32 inside.

RMSNorm: Zhang and Sennrich 2019. Rotary positions: Su et al. 2021. Gated FFN: Shazeer 2020. Shared key heads:
Ainslie et al. 2023.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def run(
    config: Mapping[str, object], tensors: Mapping[str, Array], ids: Sequence[int]
) -> tuple[Array, Array]:
    """The stream [L + 1, T, D] and the logits [T, V]."""
    eps, layers = float(str(config["rms_norm_eps"])), int(str(config["num_hidden_layers"]))
    x = tensors["model.embed_tokens.weight"][list(ids)]
    stream = [x]
    for layer in range(layers):
        own = {
            name.split(".", 3)[3]: t
            for name, t in tensors.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        x = x + attention(config, own, rms_norm(x, own["input_layernorm.weight"], eps))
        x = x + gated(own, rms_norm(x, own["post_attention_layernorm.weight"], eps))
        stream.append(x)
    words = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
    return np.stack(stream), rms_norm(x, tensors["model.norm.weight"], eps) @ words.T


def rms_norm(x: Array, gain: Array, eps: float) -> Array:
    """Root-mean-square norm."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gain


def linear(tensors: Mapping[str, Array], name: str, x: Array) -> Array:
    """An affine map."""
    return x @ tensors[f"{name}.weight"].T + tensors.get(f"{name}.bias", np.zeros(1))


def gated(tensors: Mapping[str, Array], x: Array) -> Array:
    """Down(gelu(gate x) · up x), gelu being x · Φ(x)."""
    gate = linear(tensors, "mlp.gate_proj", x)
    gelu = gate * 0.5 * (1 + np.vectorize(math.erf)(gate / math.sqrt(2)))
    return linear(tensors, "mlp.down_proj", gelu * linear(tensors, "mlp.up_proj", x))


def attention(config: Mapping[str, object], tensors: Mapping[str, Array], x: Array) -> Array:
    """Causal attention, one query of one head at a time."""
    heads, width = int(str(config["num_attention_heads"])), int(str(config["head_dim"]))
    group = heads // int(str(config["num_key_value_heads"]))
    q, k, v = (linear(tensors, f"self_attn.{name}_proj", x) for name in "qkv")
    mixed = np.zeros((len(x), heads * width))
    base = float(str(config["rope_theta"]))
    for head in range(heads):
        own, shared = (
            slice(head * width, (head + 1) * width),
            slice(head // group * width, (head // group + 1) * width),
        )
        turned_k = np.stack([rotated(row, place, base) for place, row in enumerate(k[:, shared])])
        for query in range(len(x)):
            scores = turned_k[: query + 1] @ rotated(q[query, own], query, base) / math.sqrt(width)
            weights = np.exp(scores - scores.max())
            mixed[query, own] = weights @ v[: query + 1, shared] / weights.sum()
    return linear(tensors, "self_attn.o_proj", mixed)


def rotated(x: Array, position: int, base: float) -> Array:
    """One vector, turned in the planes (i, i + K/2) as complex numbers."""
    half = len(x) // 2
    angles = position * base ** (-2 * np.arange(half) / len(x))
    turned = (x[:half] + 1j * x[half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag])
