"""One query and one key of a real model with rotary positions, after and before they were turned."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import Rope
from model.labs.one_head import COARSE, TOLERANCE
from model.labs.parameters.rope import RopeModel
from model.labs.reading import Ran
from model.labs.turning import Turning
from model.labs.vectors import block_of
from model.linear import Linear
from model.position import rotate, rotation
from model.trace import SiteTrace

# Angles are products of positions and speeds in fp32: two roundings of 2^-24, of the query and of the key.
ANGLE = 2.0**-22


@dataclass(frozen=True)
class RealPair:
    """One query and one key as the model turned them, [K] in fp64, and the positions m and n they stood at.

    `bare_q` and `bare_k` are made of the stream by the bare matrices, and no rotation has touched them.
    """

    rope: Rope
    q: Tensor
    k: Tensor
    bare_q: Tensor
    bare_k: Tensor
    m: int
    n: int
    scale: float
    score: float
    dtype: str

    def moved(self, x: Tensor, by: Tensor) -> Tensor:
        """Vector x [K] turned on by each of `by` [N] positions; negative ones turn it back: [N, K]."""
        turn = rotation(self.rope, by[None], torch.float64)
        return rotate(x.expand(1, 1, len(by), -1), turn)[0, 0]  # [N, K]

    def unturned(self) -> tuple[Tensor, Tensor]:
        """Both turned back to position 0, [K]."""
        return (
            self.moved(self.q, torch.tensor([-self.m]))[0],
            self.moved(self.k, torch.tensor([-self.n]))[0],
        )

    def by_formula(self, distances: Tensor) -> Tensor:
        """q·k at distances m - n [N] by Su et al. 2021 in complex numbers, from the bare vectors: [N]."""
        width = self.rope.width
        rest = self.bare_q[width:] @ self.bare_k[width:]
        turning = Turning(self.rope)
        return turning.closed_score(self.bare_q[:width], self.bare_k[:width], distances) + rest  # [N]

    @property
    def size(self) -> float:
        """|q||k|, the largest score that they can have."""
        return float(self.q.norm() * self.k.norm())

    @property
    def rounding(self) -> float:
        """What the model's own numbers may be off, as a share of `size`."""
        return TOLERANCE.get(self.dtype, COARSE) + ANGLE * max(self.m, self.n)


@torch.inference_mode()
def real_pair(ran: Ran, parameters: RopeModel) -> tuple[RealPair, SiteTrace]:
    """The chosen query and key. `ran` must hold "resid"."""
    stack, head, m, n = ran.loaded.config.stack, parameters.head, parameters.query, parameters.key
    assert isinstance(stack.position, Rope)
    name = stack.self_sites[parameters.layer]
    site = ran.trace.sites[name]
    group = site.key_head(head)
    score = site.attention(range(head, head + 1), range(m, m + 1), "raw")[0, 0, n].item()
    block = block_of(ran.loaded, parameters.layer)
    x = ran.trace.resid[stack.name, parameters.layer]  # [T, D]
    if stack.norm_placement != "post":
        x = block.get_submodule("attention_norm")(x)  # [T, D]
    attention = block.attention
    return RealPair(
        stack.position,
        site.q[head, m].double().cpu(),
        site.k[group, n].double().cpu(),
        _part(attention.q, attention.q_norm, x[m], head, stack.attention.head_width),
        _part(attention.k, attention.k_norm, x[n], group, stack.attention.head_width),
        m,
        n,
        ran.loaded.config.scale_of(name),
        score,
        ran.loaded.dtype,
    ), site


def _part(linear: Linear, norm: nn.Module | None, x: Tensor, head: int, width: int) -> Tensor:
    """One head's q or k of a token x [D] before it is turned, [K] in fp64."""
    rows = slice(head * width, (head + 1) * width)
    bias = dict(linear.named_parameters()).get("bias")
    made = F.linear(x, linear.weight[rows], None if bias is None else bias[rows])  # [K]
    return (made if norm is None else norm(made)).double().cpu()
