"""Qwen2 (Yang et al. 2024) and Qwen3 (2025): LLaMA's block with biases on q, k, v, or norms on q and k."""

from collections.abc import Sequence

from model.checkpoints import llama_like
from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.rope import read_rope
from model.checkpoints.source import Source, WithoutPrefix
from model.config import AttentionConfig, FeedForwardConfig, RMSNorm, TransformerConfig
from model.rules import MaskRule


def read_qwen2(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a Qwen2 folder with Hugging Face names."""
    width, heads = attributes.integer("hidden_size", 4096), attributes.integer("num_attention_heads", 32)
    head_width = llama_like.head_width(attributes, width, heads)
    attention = AttentionConfig(
        heads, _kv_heads(attributes), head_width, head_width**-0.5, qkv_bias=True, out_bias=False
    )
    return _checkpoint("qwen2", attributes, source, width, attention)


def read_qwen3(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a Qwen3 folder with Hugging Face names."""
    width, heads = attributes.integer("hidden_size", 4096), attributes.integer("num_attention_heads", 32)
    head_width = llama_like.head_width(attributes, width, heads, default=128)
    bias, norm = attributes.flag("attention_bias", default=False), llama_like.rms_norm(attributes)
    attention = AttentionConfig(
        heads,
        _kv_heads(attributes),
        head_width,
        head_width**-0.5,
        qkv_bias=bias,
        out_bias=bias,
        qk_norm=RMSNorm(norm.eps),
    )
    return _checkpoint("qwen3", attributes, source, width, attention)


def _checkpoint(
    family: str, attributes: Attributes, source: Source, width: int, attention: AttentionConfig
) -> Checkpoint:
    config = _config(attributes, width, attention)
    source = WithoutPrefix(source, "model.")
    return Checkpoint(family, config, source, llama_like.table(config), llama_like.ignored(config))


def _config(attributes: Attributes, width: int, attention: AttentionConfig) -> TransformerConfig:
    layers = attributes.integer("num_hidden_layers", 32)
    masks = _masks(attributes, layers)
    attributes.no_effect("attention_dropout")
    stack = llama_like.decoder(
        layers=layers,
        width=width,
        attention=attention,
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", 22016),
            attributes.choice("hidden_act", ACTIVATIONS, "silu"),
            gated=True,
            bias=False,
        ),
        norm=llama_like.rms_norm(attributes),
        position=read_rope(attributes, attention.head_width, llama_like.max_positions(attributes, 32768)),
        mask=masks[0],
        layer_masks=masks,
    )
    tied = attributes.flag("tie_word_embeddings", default=False)
    return llama_like.model(stack, attributes.integer("vocab_size", 151936), tied=tied)


def _masks(attributes: Attributes, layers: int) -> tuple[MaskRule, ...]:
    """The layers from `max_window_layers` on look through the window, where it is used at all."""
    window = attributes.integer_or_null("sliding_window", 4096, LARGEST_LENGTH)
    if not attributes.flag("use_sliding_window", default=False):
        window = None
    full = attributes.integer("max_window_layers", 28) if attributes.has("max_window_layers") else 28
    types = [
        "sliding_attention" if window is not None and i >= full else "full_attention" for i in range(layers)
    ]
    return llama_like.layer_masks(attributes, window, tuple(types))


def _kv_heads(attributes: Attributes) -> int:
    return attributes.integer("num_key_value_heads", 32)
