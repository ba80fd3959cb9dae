"""LLaMA (Touvron et al. 2023): decoder-only, rotary positions, pre-norm RMSNorm, SwiGLU, grouped queries."""

from collections.abc import Sequence

from model.checkpoints import llama_like
from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.rope import read_rope
from model.checkpoints.source import Source, WithoutPrefix
from model.config import AttentionConfig, FeedForwardConfig, TransformerConfig


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a folder with Hugging Face names."""
    source = WithoutPrefix(source, "model.")
    config = _config(attributes)
    return Checkpoint("llama", config, source, llama_like.table(config), llama_like.ignored(config))


def _config(attributes: Attributes) -> TransformerConfig:
    width, heads = attributes.integer("hidden_size", 4096), attributes.integer("num_attention_heads", 32)
    head_width = llama_like.head_width(attributes, width, heads)
    attributes.expect(pretraining_tp=1, rope_interleaved=False, is_encoder_decoder=False)
    attributes.no_effect("attention_dropout", "is_llama_config")
    bias = attributes.flag("attention_bias", default=False)
    kv_heads = attributes.integer("num_key_value_heads", heads)
    stack = llama_like.decoder(
        layers=attributes.integer("num_hidden_layers", 32),
        width=width,
        attention=AttentionConfig(
            heads, kv_heads, head_width, head_width**-0.5, qkv_bias=bias, out_bias=bias
        ),
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", 11008),
            attributes.choice("hidden_act", ACTIVATIONS, "silu"),
            gated=True,
            bias=attributes.flag("mlp_bias", default=False),
        ),
        norm=llama_like.rms_norm(attributes),
        position=read_rope(attributes, head_width, llama_like.max_positions(attributes, 2048)),
    )
    tied = attributes.flag("tie_word_embeddings", default=False)
    return llama_like.model(stack, attributes.integer("vocab_size", 32000), tied=tied)
