"""What a model costs at a length: operations, the cache of keys and values, attention written out."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from model.config import AudioConfig, StackConfig, TransformerConfig
from model.labs.counting import Weight
from model.masks import allowed, visible_range
from model.rules import MaskRule


@dataclass(frozen=True)
class Lengths:
    """Tokens of the stack that is read out, and positions of an encoder beside it: 0 where there is none."""

    tokens: int
    source: int

    @classmethod
    def of(cls, config: TransformerConfig, tokens: int) -> "Lengths":
        """A text of `tokens`; beside a decoder the source is as long, or as long as the sound always is."""
        if config.encoder is None:
            return cls(tokens, 0)
        front = config.encoder.front
        return cls(tokens, front.frames if isinstance(front, AudioConfig) else tokens)


@lru_cache(maxsize=512)
def seen(rule: MaskRule, tokens: int) -> int:
    """Keys that the last of so many tokens sees."""
    row = range(tokens - 1, tokens)
    keys = visible_range(rule, row, tokens)
    return int(allowed(rule, row, keys).sum())


def masks(stack: StackConfig) -> Counter[MaskRule]:
    """How many layers of a stack have each mask."""
    return Counter(stack.layer_masks or {stack.mask: stack.layers})


def token_operations(config: TransformerConfig, weights: list[Weight], lengths: Lengths) -> int:
    """Multiplications and additions for the last token, the others' keys and values being known.

    Two for each number of a matrix that the token is multiplied by, and 4 K a head and key for q·k and the
    mixing of values. Looking an embedding up, norms and activations are not counted, as usual (Kaplan et al.
    2020, section 2.1, table 1, which spreads the keys evenly over the positions).
    """
    stack = config.stack
    # What cross-attention takes from the source is computed once, with the source.
    own = [one for one in weights if not _of_encoder(one) and not _reads_memory(one)]
    cross = (
        _mixing(stack.cross.heads * stack.cross.head_width, lengths.source) * stack.layers
        if stack.cross
        else 0
    )
    return _matrices(own) + _head(config) + _self_mixing(stack, lengths.tokens) + cross


def source_operations(config: TransformerConfig, weights: list[Weight], lengths: Lengths) -> int:
    """The same for one position of the source: the encoder, and keys and values that the decoder reads."""
    if config.encoder is None:
        return 0
    read = [one for one in weights if _of_encoder(one) or _reads_memory(one)]
    # The first convolution of a spectrogram runs at twice as many places as the encoder has positions.
    again = 2 * sum(one.numbers for one in weights if one.name == "encoder.front.first.weight")
    return _matrices(read) + again + _self_mixing(config.encoder.stack, lengths.source)


def cache_numbers(config: TransformerConfig, lengths: Lengths) -> int:
    """Keys and values that a decoder keeps: 2 G K a layer and token, at most a window's; the source's once.

    An encoder reads all tokens at once and keeps none.
    """
    stack = config.stack
    if stack.name == "encoder":
        return 0
    kept = sum(layers * seen(rule, lengths.tokens) for rule, layers in masks(stack).items())
    own = 2 * stack.attention.kv_heads * stack.attention.head_width * kept
    cross = stack.cross
    return own + (2 * cross.kv_heads * cross.head_width * stack.layers * lengths.source if cross else 0)


def attention_numbers(config: TransformerConfig, lengths: Lengths) -> int:
    """Attention weights of all heads and layers, each a whole matrix of queries × keys."""
    sizes = {"encoder": lengths.source if config.encoder else lengths.tokens, "decoder": lengths.tokens}
    own = sum(stack.layers * stack.attention.heads * sizes[stack.name] ** 2 for stack in config.stacks)
    cross = config.stack.cross
    return own + (config.stack.layers * cross.heads * lengths.tokens * lengths.source if cross else 0)


def _matrices(weights: list[Weight]) -> int:
    """Two operations for each number of a matrix in a block, a projection or a convolution."""
    skipped = ("tokens.weight", "positions.weight", "segments.weight", "bias.table", "head.projection.weight")
    return sum(2 * one.numbers * one.uses for one in weights if one.matrix and not one.name.endswith(skipped))


def _head(config: TransformerConfig) -> int:
    """The product with the vocabulary, whether its matrix is the embedding's or its own."""
    if config.head is None:
        return 0
    width = config.head.width or config.stack.width
    return 2 * width * config.embedding.vocabulary


def _self_mixing(stack: StackConfig, tokens: int) -> int:
    inner = stack.attention.heads * stack.attention.head_width
    return sum(layers * _mixing(inner, seen(rule, tokens)) for rule, layers in masks(stack).items())


def _mixing(inner: int, keys: int) -> int:
    return 4 * inner * keys


def _of_encoder(weight: Weight) -> bool:
    return weight.name.startswith("encoder.")


def _reads_memory(weight: Weight) -> bool:
    return ".cross.k." in weight.name or ".cross.v." in weight.name
