"""A loaded model run in fp64, a block at a time, so that no second model fills the memory."""

import copy
from typing import TypeVar

from torch import Tensor, nn
from torch.func import functional_call

from model.stack import BlockRun
from model.transformer import Transformer

# A larger model takes too long in fp64 for a lab.
MOST_PARAMETERS = 500_000_000
M = TypeVar("M", bound=nn.Module)


class _InDouble(nn.Module):
    """A block whose weights are fp64 only while it runs."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, run: BlockRun) -> Tensor:
        """Maps x [B, T, D] in fp64 to [B, T, D]."""
        weights = {name: weight.double() for name, weight in self.block.named_parameters()}
        out: Tensor = functional_call(self.block, weights, (x, run))  # [B, T, D]
        return out


class _Looked(nn.Module):
    """A table of which only the rows that are looked up become fp64."""

    def __init__(self, table: nn.Module) -> None:
        super().__init__()
        self.table = table

    def forward(self, ids: Tensor) -> Tensor:
        """Rows [B, T, D] of ids [B, T]."""
        out: Tensor = self.table(ids).double()  # [B, T, D]
        return out


def in_double(transformer: Transformer) -> Transformer:
    """The same model for runs in fp64, without a token head. It shares the weights."""
    exact = _shallow(transformer)
    exact.embeddings, exact.stack = _shallow(transformer.embeddings), _shallow(transformer.stack)
    exact.embeddings.tokens = _Looked(transformer.embeddings.tokens)  # type: ignore[assignment]
    for name, part in exact.embeddings.named_children():
        if name != "tokens":
            setattr(exact.embeddings, name, copy.deepcopy(part).double())
    exact.stack.blocks = nn.ModuleList(_InDouble(block) for block in transformer.stack.blocks)
    for name, part in exact.stack.named_children():
        if name != "blocks":
            setattr(exact.stack, name, copy.deepcopy(part).double())
    exact.head = None
    return exact


def small_enough(transformer: Transformer) -> bool:
    """Whether a lab may run it in fp64."""
    return sum(weight.numel() for weight in transformer.parameters()) <= MOST_PARAMETERS


def _shallow(module: M) -> M:
    """The module with a list of parts of its own, but the same parts."""
    made = copy.copy(module)
    vars(made)["_modules"] = dict(vars(module)["_modules"])
    return made
