"""What one run of a net consisted of, read from the graph that autograd recorded of it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.autograd.graph import Node

# Where autograd keeps the two factors of a product, or their sizes.
_KEPT = {
    "Mm": ("_saved_self_sym_sizes", "_saved_mat2_sym_sizes"),
    "Addmm": ("_saved_mat1_sym_sizes", "_saved_mat2_sym_sizes"),
    "Bmm": ("_saved_self", "_saved_mat2"),
}


@dataclass(frozen=True)
class Work:
    """Multiply-adds of all matrix products of a run, and its longest chain of steps that wait in turn."""

    multiply_adds: int
    steps: int


def work(net: nn.Module, x: Tensor) -> Work:
    """The work of one run of `net` over one sequence x [1, T, D].

    A step is one use of the recurrent weights W_hh, or one softmax. The longest chain of them is the column
    "sequential operations" of Vaswani et al. 2017, table 1.
    """
    recurrent = {id(weight) for name, weight in net.named_parameters() if "weight_hh" in name}
    order = in_order(net(x).sum().grad_fn)
    products = [node for node in order if "mmBackward" in node.name()]
    chain = longest_chain(order, lambda node: _is_step(node, recurrent))
    return Work(sum(map(_multiply_adds, products)), chain)


def in_order(last: Node) -> list[Node]:
    """Every operation that `last` waited for, and `last`, each after those whose results it needed."""
    order: dict[Node, None] = {}
    stack = [(last, False)]
    while stack:
        node, ready = stack.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
        else:
            stack.append((node, True))
            stack.extend((before, False) for before, _ in node.next_functions if before is not None)
    return list(order)


def longest_chain(order: Sequence[Node], counts: Callable[[Node], bool]) -> int:
    """The most nodes that count on any path to the last one of an order that `in_order` made."""
    longest: dict[Node | None, int] = {None: 0}
    for node in order:
        before = max((longest[needed] for needed, _ in node.next_functions), default=0)
        longest[node] = before + counts(node)
    return longest[order[-1]]


def _multiply_adds(node: Node) -> int:
    """n·m·k for a product of [n, m] and [m, k]."""
    left, right = (getattr(node, name) for name in _KEPT[node.name().removesuffix("Backward0")])
    return int(math.prod(getattr(left, "shape", left)) * getattr(right, "shape", right)[-1])


def _is_step(node: Node, recurrent: set[int]) -> bool:
    if node.name().startswith("Softmax"):
        return True
    return "mmBackward" in node.name() and any(_reads(needed, recurrent) for needed, _ in node.next_functions)


def _reads(node: Node | None, weights: set[int]) -> bool:
    """Whether a node is one of the weights, or its transpose."""
    if node is not None and node.name().startswith("TBackward"):
        return _reads(node.next_functions[0][0], weights)
    return id(getattr(node, "variable", None)) in weights
