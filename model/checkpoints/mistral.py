"""Mistral (Jiang et al. 2023): LLaMA's block with a sliding window of keys."""

from collections.abc import Sequence

from model.checkpoints import llama_like
from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.rope import read_rope
from model.checkpoints.source import Source, WithoutPrefix
from model.config import AttentionConfig, FeedForwardConfig, TransformerConfig


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a folder with Hugging Face names."""
    config = _config(attributes)
    source = WithoutPrefix(source, "model.")
    return Checkpoint("mistral", config, source, llama_like.table(config), llama_like.ignored(config))


def _config(attributes: Attributes) -> TransformerConfig:
    width, heads = attributes.integer("hidden_size", 4096), attributes.integer("num_attention_heads", 32)
    layers, kv_heads = (
        attributes.integer("num_hidden_layers", 32),
        attributes.integer("num_key_value_heads", 8),
    )
    head_width = llama_like.head_width(attributes, width, heads)
    window = attributes.integer_or_null("sliding_window", 4096, LARGEST_LENGTH)
    masks = llama_like.layer_masks(attributes, window, ("sliding_attention",) * layers)
    attributes.no_effect("attention_dropout")
    stack = llama_like.decoder(
        layers=layers,
        width=width,
        attention=AttentionConfig(
            heads, kv_heads, head_width, head_width**-0.5, qkv_bias=False, out_bias=False
        ),
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", 14336),
            attributes.choice("hidden_act", ACTIVATIONS, "silu"),
            gated=True,
            bias=False,
        ),
        norm=llama_like.rms_norm(attributes),
        position=read_rope(attributes, head_width, llama_like.max_positions(attributes, 131072)),
        mask=masks[0],
        layer_masks=masks,
    )
    tied = attributes.flag("tie_word_embeddings", default=False)
    return llama_like.model(stack, attributes.integer("vocab_size", 32000), tied=tied)
