"""Measures of vectors that several labs share."""

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.words import span
from model.loading import LoadedModel
from model.stack import Block


def rms(x: Tensor) -> Tensor:
    """Root mean square of x [..., D] over D."""
    return x.square().mean(dim=-1).sqrt()


def apart(a: Tensor, b: Tensor) -> float:
    """The largest difference of two tensors, against the largest entry of b."""
    a, b = a.double(), b.double()
    largest = b.abs().max().item()
    return (a - b).abs().max().item() / (largest or 1.0)


def rounding(x: Tensor) -> float:
    """How far `apart` two ways of computing x may be: sums in another order, in x's own type."""
    return max(1e-5, 8 * torch.finfo(x.dtype).eps)


def sameness(x: Tensor) -> float:
    """Mean cosine between different tokens' vectors x [T, D], 1 if all point one way. NaN for one token."""
    x, tokens = x.double(), len(x)
    x = x / x.abs().amax(dim=-1, keepdim=True)  # squares of very small or large numbers leave their range
    directions = x / x.norm(dim=-1, keepdim=True)  # [T, D]
    return (
        ((directions @ directions.T).sum() - tokens).item() / (tokens * (tokens - 1))
        if tokens > 1
        else torch.nan
    )


def seen(label: str) -> str:
    """A token's text with its spaces and line breaks visible, for tables."""
    return label.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣")


def numbered(labels: list[str]) -> list[str]:
    """Tokens with their places, "2 animal": an axis needs labels that differ."""
    return [f"{place} {seen(label)}" for place, label in enumerate(labels)]


def stack_name(loaded: LoadedModel) -> str:
    """The stack that runs, as traces name it."""
    return loaded.config.stack.name


def block_of(loaded: LoadedModel, layer: int) -> Block:
    """A block of the model. Raises InputError where there is none, or it runs both parts at once."""
    stack = loaded.transformer.stack
    if layer >= stack.config.layers:
        raise InputError(
            f"There is no layer {layer}: this model has layers {span(stack.config.layers)}; choose one."
        )
    block = stack.blocks[layer]
    assert isinstance(block, Block)
    if block.parallel:
        raise InputError(
            "This model's blocks add attention and feed-forward of the same input, not one after the other: "
            "choose another model."
        )
    return block
