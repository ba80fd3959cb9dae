"""Gemma (2024) and Gemma 2 (2024): LLaMA's block with scaled embeddings and gains counted from 1.

Gemma 2 adds norms after each sublayer, soft-caps on scores and logits, and a window in every other layer.
"""

from collections.abc import Sequence

from torch import Tensor

from model.checkpoints import llama_like
from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.rope import read_rope
from model.checkpoints.source import Source, WithoutPrefix
from model.config import AttentionConfig, FeedForwardConfig, StackConfig

_NAMES_2 = llama_like.NAMES | {
    "attention_out_norm": "layers.{layer}.post_attention_layernorm",
    "ffn_norm": "layers.{layer}.pre_feedforward_layernorm",
    "ffn_out_norm": "layers.{layer}.post_feedforward_layernorm",
}


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a Gemma folder with Hugging Face names."""
    width, heads = attributes.integer("hidden_size", 3072), attributes.integer("num_attention_heads", 16)
    kv_heads, head_width = attributes.integer("num_key_value_heads", 16), attributes.integer("head_dim", 256)
    bias = attributes.flag("attention_bias", default=False)
    attributes.expect(use_bidirectional_attention=False)
    activation = attributes.choice("hidden_act", ACTIVATIONS, "gelu_pytorch_tanh")
    stack = llama_like.decoder(
        layers=attributes.integer("num_hidden_layers", 28),
        width=width,
        attention=AttentionConfig(
            heads, kv_heads, head_width, head_width**-0.5, qkv_bias=bias, out_bias=bias
        ),
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", 24576), activation, gated=True, bias=False
        ),
        norm=llama_like.rms_norm(attributes),
        position=read_rope(attributes, head_width, llama_like.max_positions(attributes, 8192)),
    )
    return _checkpoint("gemma", attributes, source, stack)


def read_gemma2(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a Gemma 2 folder with Hugging Face names."""
    layers = attributes.integer("num_hidden_layers", 26)
    window = attributes.integer_or_null("sliding_window", 4096, LARGEST_LENGTH)
    types = ("sliding_attention", "full_attention") * layers
    masks = llama_like.layer_masks(attributes, window, types[:layers])
    attention = _attention_2(attributes)
    attributes.expect(use_bidirectional_attention=False)
    activation = attributes.choice("hidden_activation", ACTIVATIONS, "gelu_pytorch_tanh")
    attributes.no_effect("hidden_act")
    stack = llama_like.decoder(
        layers=layers,
        width=attributes.integer("hidden_size", 2304),
        attention=attention,
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", 9216), activation, gated=True, bias=False
        ),
        norm=llama_like.rms_norm(attributes),
        norm_placement="both",
        position=read_rope(attributes, attention.head_width, llama_like.max_positions(attributes, 8192)),
        mask=masks[0],
        layer_masks=masks,
    )
    return _checkpoint("gemma2", attributes, source, stack)


def _attention_2(attributes: Attributes) -> AttentionConfig:
    heads, kv_heads = (
        attributes.integer("num_attention_heads", 8),
        attributes.integer("num_key_value_heads", 4),
    )
    bias = attributes.flag("attention_bias", default=False)
    return AttentionConfig(
        heads,
        kv_heads,
        attributes.integer("head_dim", 256),
        attributes.number("query_pre_attn_scalar", 256) ** -0.5,
        qkv_bias=bias,
        out_bias=bias,
        softcap=attributes.number_or_null("attn_logit_softcapping", 50.0),
    )


def _checkpoint(family: str, attributes: Attributes, source: Source, stack: StackConfig) -> Checkpoint:
    attributes.no_effect("attention_dropout")
    capped = family == "gemma2"
    config = llama_like.model(
        stack,
        attributes.integer("vocab_size", 256000),
        tied=attributes.flag("tie_word_embeddings", default=True),
        scale=stack.width**0.5,
        softcap=attributes.number_or_null("final_logit_softcapping", 30.0) if capped else None,
    )
    names = _NAMES_2 if stack.norm_placement == "both" else llama_like.NAMES
    table = llama_like.table(config, names, gain=_from_one)
    return Checkpoint(family, config, WithoutPrefix(source, "model."), table, llama_like.ignored(config))


def _from_one(gain: Tensor) -> Tensor:
    """Gemma stores how much a gain differs from 1."""
    return gain + 1
