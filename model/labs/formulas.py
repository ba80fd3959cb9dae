"""A model's size and costs in closed form, from its configuration alone: what the counts are checked against.

No tensor is made here, and no function of `counting` and `costs` is used.
"""

from model.config import (
    AttentionConfig,
    AudioConfig,
    LayerNorm,
    Learned,
    Norm,
    RelativeBuckets,
    StackConfig,
    TransformerConfig,
)
from model.rules import MaskRule, Window


def parameters(config: TransformerConfig) -> int:
    """All numbers that are stored: blocks, last norms, what stands before the blocks and behind them."""
    blocks = sum(
        _blocks(stack) + stack.final_norm * _norm(stack.norm, stack.width) for stack in config.stacks
    )
    return blocks + _before(config) + _transform(config) + vocabulary_and_places(config)


def vocabulary_and_places(config: TransformerConfig) -> int:
    """What Kaplan et al. 2020, section 1.3, leave out of N: the matrices of words, positions and segments."""
    embedding, head = config.embedding, config.head
    inner, words = _inner(config), embedding.vocabulary
    found = words * inner + (embedding.segments or 0) * inner
    if embedding.width:
        found += (inner + 1) * config.stack.width
    if head is not None:
        found += words * (head.bias + (not head.tied) * (head.width or config.stack.width))
    return found + sum(_places(stack, inner) for stack in config.stacks)


def operations(config: TransformerConfig, tokens: int, source: int) -> int:
    """For the last token: 2 for each number of a matrix it meets, 4 K for each head and key."""
    stack = config.stack
    found = _layer_operations(stack, tokens)
    if stack.cross is not None:
        inner = stack.cross.heads * stack.cross.head_width
        found += stack.layers * (2 * 2 * stack.width * inner + 4 * inner * source)
    if config.embedding.width:
        found += 2 * config.embedding.width * stack.width
    if config.head is not None:
        own = config.head.width or stack.width
        found += 2 * own * config.embedding.vocabulary + (
            2 * stack.width * own if config.head.transform else 0
        )
    return found


def source_operations(config: TransformerConfig, source: int) -> int:
    """For one position of the source: encoder, convolutions, and the keys and values that are read."""
    if config.encoder is None:
        return 0
    found, front, cross = (
        _layer_operations(config.encoder.stack, source),
        config.encoder.front,
        config.stack.cross,
    )
    if cross is not None:
        found += 2 * config.stack.layers * 2 * config.stack.width * cross.kv_heads * cross.head_width
    if isinstance(front, AudioConfig):
        width = config.encoder.stack.width
        # The first convolution runs at two places for each that the second, of stride 2, leaves.
        found += 2 * 3 * width * (2 * front.mel_bins + width)
    return found


def cache(config: TransformerConfig, tokens: int, source: int) -> int:
    """Numbers kept: a key and a value a layer, key head and token in reach; of the source once a layer."""
    stack, own, cross = config.stack, config.stack.attention, config.stack.cross
    if stack.name == "encoder":
        return 0
    of_source = 2 * stack.layers * cross.kv_heads * cross.head_width * source if cross else 0
    return 2 * own.kv_heads * own.head_width * _keys(stack, tokens) + of_source


def attention(config: TransformerConfig, tokens: int, source: int) -> int:
    """One weight for each pair of query and key, in each head of each layer."""
    stack, cross = config.stack, config.stack.cross
    found = stack.layers * stack.attention.heads * tokens * tokens
    if config.encoder is not None:
        found += config.encoder.stack.layers * config.encoder.stack.attention.heads * source * source
    return found + (stack.layers * cross.heads * tokens * source if cross else 0)


def _blocks(stack: StackConfig) -> int:
    sites = [stack.attention, *([stack.cross] if stack.cross else [])]
    feed_forward, into = stack.feed_forward, 2 if stack.feed_forward.gated else 1
    found = sum(_attention(site, stack.width) for site in sites)
    found += (into + 1) * stack.width * feed_forward.width
    found += (into * feed_forward.width + stack.width) * feed_forward.bias
    norms = (len(sites) + 1) * (2 if stack.norm_placement == "both" else 1)
    return (1 if stack.shared else stack.layers) * (found + norms * _norm(stack.norm, stack.width))


def _attention(site: AttentionConfig, width: int) -> int:
    queries, keys = site.heads * site.head_width, site.kv_heads * site.head_width
    biases = site.qkv_bias * (queries + keys * (1 if site.bare_keys else 2)) + site.out_bias * width
    of_heads = 2 * _norm(site.qk_norm, site.head_width) if site.qk_norm else 0
    return 2 * width * (queries + keys) + biases + of_heads


def _norm(norm: Norm, width: int) -> int:
    return width * (2 if isinstance(norm, LayerNorm) else 1)


def _inner(config: TransformerConfig) -> int:
    return config.embedding.width or config.stack.width


def _before(config: TransformerConfig) -> int:
    """Norms of the embeddings, and the convolutions over sound."""
    found = _norm(config.embedding.norm, _inner(config)) if config.embedding.norm else 0
    if config.encoder is None:
        return found
    front, width = config.encoder.front, config.encoder.stack.width
    if isinstance(front, AudioConfig):
        return found + 3 * width * (front.mel_bins + width) + 2 * width
    return found + (_norm(front.norm, width) if front.norm else 0)


def _transform(config: TransformerConfig) -> int:
    """The dense layer and norm before a masked-token head's vocabulary."""
    head, width = config.head, config.stack.width
    if head is None or head.transform is None:
        return 0
    own = head.width or width
    return (width + 1) * own + _norm(head.transform[1], own)


def _places(stack: StackConfig, inner: int) -> int:
    match stack.position:
        case Learned(rows=rows):
            return rows * inner
        case RelativeBuckets(buckets=buckets):
            return buckets * stack.attention.heads
        case _:
            return 0


def _layer_operations(stack: StackConfig, tokens: int) -> int:
    """Self-attention and feed-forward of all layers, for one token that sees what the last one does."""
    own, feed_forward = stack.attention, stack.feed_forward
    projections = 2 * stack.width * own.head_width * (own.heads + own.kv_heads)
    matrices = projections + (3 if feed_forward.gated else 2) * stack.width * feed_forward.width
    return 2 * stack.layers * matrices + 4 * own.heads * own.head_width * _keys(stack, tokens)


def _keys(stack: StackConfig, tokens: int) -> int:
    """Keys that the last token sees, all layers together."""
    if stack.layer_masks is None:
        return stack.layers * _reach(stack.mask, tokens)
    return sum(_reach(mask, tokens) for mask in stack.layer_masks)


def _reach(mask: MaskRule, tokens: int) -> int:
    return min(tokens, mask.left + 1) if isinstance(mask, Window) else tokens
