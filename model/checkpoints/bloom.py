"""BLOOM (BigScience 2022): decoder-only, ALiBi biases in place of positions, a norm on the embeddings."""

from collections.abc import Sequence

from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.fused_qkv import fused_qkv
from model.checkpoints.mapping import Ignore, Take, layer_norm, linear, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import (
    AlibiPosition,
    AttentionConfig,
    EmbeddingConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerNorm,
    StackConfig,
    TransformerConfig,
)
from model.rules import Causal

_NO_EFFECT = (
    *("attention_dropout", "hidden_dropout", "attention_softmax_in_fp32", "bias_dropout_fusion"),
    *("masked_softmax_fusion", "offset_alibi", "unk_token_id", "slow_but_exact", "pretraining_tp"),
    *("num_attention_heads", "n_inner"),
)
_IGNORED = (Ignore(r"lm_head\.weight", "tied", copy_of="word_embeddings.weight"),)


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a BLOOM folder."""
    config = _config(attributes)
    source = WithoutPrefix(source, "transformer.")
    return Checkpoint("bloom", config, source, _table(config.stack.attention.heads), _IGNORED)


def _config(attributes: Attributes) -> TransformerConfig:
    width, heads = (
        attributes.integer(_either(attributes, "hidden_size", "n_embed"), 64),
        attributes.integer("n_head", 8),
    )
    head_width = attributes.divide("hidden_size", width, "n_head", heads)
    norm = LayerNorm(attributes.number("layer_norm_epsilon", 1e-5))
    attributes.expect(apply_residual_connection_post_layernorm=False, tie_word_embeddings=True)
    attributes.no_effect(*_NO_EFFECT)
    stack = StackConfig(
        name="decoder",
        layers=attributes.integer(_either(attributes, "n_layer", "num_hidden_layers"), 2),
        width=width,
        attention=AttentionConfig(heads, heads, head_width, head_width**-0.5, qkv_bias=True, out_bias=True),
        feed_forward=FeedForwardConfig(4 * width, "gelu_tanh", gated=False, bias=True),
        norm=norm,
        norm_placement="pre",
        final_norm=True,
        position=AlibiPosition(attributes.integer("seq_length", 2048, LARGEST_LENGTH)),
        mask=Causal(),
    )
    embedding = EmbeddingConfig(attributes.integer("vocab_size", 250880), segments=None, norm=norm)
    return TransformerConfig(embedding, stack, "logits", HeadConfig(tied=True, bias=False, transform=None))


def _either(attributes: Attributes, name: str, other: str) -> str:
    return other if attributes.has(other) else name


def _table(heads: int) -> list[Take]:
    layer, block = "h.{layer}", "stack.blocks.{layer}"
    return [
        take("word_embeddings.weight", "embeddings.tokens.weight", "head.projection.weight"),
        *layer_norm("word_embeddings_layernorm", "embeddings.norm"),
        *layer_norm("ln_f", "stack.final_norm"),
        *layer_norm(f"{layer}.input_layernorm", f"{block}.attention_norm"),
        *layer_norm(f"{layer}.post_attention_layernorm", f"{block}.ffn_norm"),
        *fused_qkv(f"{layer}.self_attention.query_key_value", f"{block}.attention", heads),
        *linear(f"{layer}.self_attention.dense", f"{block}.attention.o"),
        *linear(f"{layer}.mlp.dense_h_to_4h", f"{block}.ffn.up"),
        *linear(f"{layer}.mlp.dense_4h_to_h", f"{block}.ffn.down"),
    ]
