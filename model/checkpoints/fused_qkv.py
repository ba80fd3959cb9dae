"""q, k and v kept in one matrix head by head, as GPT-NeoX and BLOOM store them."""

from torch import Tensor

from model.checkpoints.mapping import Take, take


def fused_qkv(source: str, target: str, heads: int, *, bias: bool = True) -> list[Take]:
    """The rows that split a matrix [heads · 3 · K, D] and its bias into q, k and v."""
    kinds = ("weight", "bias") if bias else ("weight",)
    return [
        take(f"{source}.{kind}", f"{target}.{name}.{kind}", change=_Part(part, heads))
        for part, name in enumerate("qkv")
        for kind in kinds
    ]


class _Part:
    """q (0), k (1) or v (2) out of rows ordered by head, then by q, k, v."""

    def __init__(self, part: int, heads: int) -> None:
        self.part, self.heads = part, heads

    def __call__(self, stacked: Tensor) -> Tensor:
        by_head = stacked.reshape(self.heads, 3, -1, *stacked.shape[1:])  # [H, 3, K, ...]
        return by_head[:, self.part].flatten(0, 1)  # [H · K, ...]
