"""How many parameters a model has, part by part, counted on tensors that have a shape and no memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from model.blueprint import Unfilled, blueprint
from model.checkpoints.checkpoint import Checkpoint
from model.config import EncoderConfig, StackConfig, TransformerConfig

# Parts of a model, in the order a reader meets them, by the names of their parameters.
PARTS = {
    "token embedding": r"(encoder\.front|embeddings)\.(tokens|projection)\.",
    "position embedding": r"(encoder\.front|embeddings)\.positions\.|.*bias\.table",
    "segment embedding": r"(encoder\.front|embeddings)\.segments\.",
    "convolutions over sound": r"encoder\.front\.(first|second)\.",
    "output layer": r"head\.",
    "norms": r".*norm\.(gain|bias)",
    "attention": r".*\.attention\.",
    "cross-attention": r".*\.cross\.",
    "feed-forward": r".*\.ffn\.",
}
EMBEDDINGS = ("token embedding", "position embedding", "segment embedding")
_BLOCK = re.compile(r"((?:encoder\.)?stack)\.blocks\.0\.")


@dataclass(frozen=True)
class Weight:
    """One tensor of a model, as often as there are layers that have their own: its name, its size.

    `uses` counts how often it is used, which is more where layers share it.
    """

    name: str
    part: str
    numbers: int
    copies: int
    uses: int
    matrix: bool

    @property
    def parameters(self) -> int:
        """Numbers stored."""
        return self.numbers * self.copies


def weights(checkpoint: Checkpoint) -> list[Weight]:
    """Every tensor that a checkpoint of this configuration stores, the ones that are used twice once."""
    config = checkpoint.config
    model = blueprint(_one_layer(config))
    copied = {target for row in checkpoint.table for target in row.at(0).targets[1:]}
    kept = ((name, part) for name, part in model.named_parameters() if name not in copied)
    return [_weight(name, parameter, config) for name, parameter in kept]


def by_part(found: list[Weight]) -> dict[str, int]:
    """Parameters of each part that the model has."""
    sums = {part: sum(one.parameters for one in found if one.part == part) for part in PARTS}
    return {part: number for part, number in sums.items() if number}


def unembedding(found: list[Weight]) -> int:
    """Parameters from the width to the vocabulary in a head of its own; 0 where the head is the embedding."""
    return sum(one.parameters for one in found if one.name.startswith("head.projection."))


def pooler(config: TransformerConfig) -> int:
    """Parameters of BERT's pooler: a dense layer over [CLS] that feeds classifiers (Devlin et al. 2019)."""
    with torch.device("meta"), Unfilled():
        dense = nn.Linear(config.stack.width, config.stack.width)
    return sum(parameter.numel() for parameter in dense.parameters())


def block_matrices(stack: StackConfig) -> int:
    """Numbers in the matrices of all blocks, by formula: W_Q, W_K, W_V, W_O, and two or three of the FFN."""
    sites = [stack.attention, *([stack.cross] if stack.cross else [])]
    attention = sum(2 * stack.width * one.head_width * (one.heads + one.kv_heads) for one in sites)
    feed_forward = (3 if stack.feed_forward.gated else 2) * stack.width * stack.feed_forward.width
    return (1 if stack.shared else stack.layers) * (attention + feed_forward)


def _one_layer(config: TransformerConfig) -> TransformerConfig:
    """The model with one block a stack: blocks are equal, and a damaged configuration may claim a million."""
    encoder = config.encoder and EncoderConfig(config.encoder.front, _one_block(config.encoder.stack))
    return replace(config, stack=_one_block(config.stack), encoder=encoder)


def _one_block(stack: StackConfig) -> StackConfig:
    return replace(stack, layers=1, layer_masks=None)


def _weight(name: str, parameter: nn.Parameter, config: TransformerConfig) -> Weight:
    copies, uses = next(_times(name, config))
    part = next(part for part, pattern in PARTS.items() if re.match(pattern, name))
    return Weight(name, part, parameter.numel(), copies, uses, matrix=parameter.dim() > 1)


def _times(name: str, config: TransformerConfig) -> Iterator[tuple[int, int]]:
    """How often a tensor is stored and used: in a block, as often as there are layers."""
    inside = _BLOCK.match(name)
    if inside:
        encoder = config.encoder
        stack = encoder.stack if encoder and inside[1].startswith("encoder") else config.stack
        yield (1 if stack.shared else stack.layers), stack.layers
    yield 1, 1
