"""q, k and v recomputed from the stream with the bare matrices: Q = X W_Q, K = X W_K, V = X W_V."""

import torch
import torch.nn.functional as F
from torch import Tensor

from model.config import Rope
from model.labs.one_head import Where
from model.labs.reading import Ran
from model.position import rotate, rotation
from model.stack import Block

Projected = tuple[str, str, float, float]


@torch.inference_mode()
def projected(ran: Ran, where: Where, query: int, key: int) -> list[Projected]:
    """Of q of `query`, k and v of `key`: name, formula in words, largest difference from the run, size.

    `ran` must hold "resid" and have run on the tokens' own positions.
    """
    stack, site = ran.loaded.config.stack, where.of(ran)
    block = ran.loaded.transformer.stack.blocks[where.layer]
    assert isinstance(block, Block)
    x = ran.trace.resid[stack.name, where.layer]  # [T, D]
    if stack.norm_placement != "post":
        x = block.get_submodule("attention_norm")(x)  # [T, D]
    group, attention = site.key_head(where.head), block.attention
    width = stack.attention.head_width
    turned = isinstance(stack.position, Rope)
    words = ", normalised" * (attention.q_norm is not None) + ", rotated" * turned
    found = []
    for name, linear, norm, index, token, recorded in (
        ("q", attention.q, attention.q_norm, where.head, query, site.q[where.head, query]),
        ("k", attention.k, attention.k_norm, group, key, site.k[group, key]),
        ("v", attention.v, None, group, key, site.v[group, key]),
    ):
        part = slice(index * width, (index + 1) * width)
        bias = dict(linear.named_parameters()).get("bias")
        made = F.linear(x[token], linear.weight[part], None if bias is None else bias[part])  # [K]
        made = made if norm is None else norm(made)
        made = _turned(made, ran, token) if turned and name != "v" else made
        said = f"x·W_{name.upper()}{'' if bias is None else ' + b'}{words if name != 'v' else ''}"
        found.append(
            (name, said, (made - recorded).abs().max().item(), max(1.0, recorded.abs().max().item()))
        )
    return found


def _turned(vector: Tensor, ran: Ran, token: int) -> Tensor:
    rope = ran.loaded.config.stack.position
    assert isinstance(rope, Rope)
    by = rotation(rope, torch.tensor([[token]], device=vector.device), vector.dtype)
    return rotate(vector[None, None, None], by)[0, 0, 0]  # [K]
