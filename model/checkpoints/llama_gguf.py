"""LLaMA and Qwen2 in GGUF files: llama.cpp's names for metadata and tensors, and its order of rows."""

from functools import partial

from torch import Tensor

from model.checkpoints import llama_like
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.gguf import GGUF
from model.config import AttentionConfig, FeedForwardConfig, RMSNorm, Rope, TransformerConfig
from model.errors import ConfigError

NAMES = {
    "attention_norm": "blk.{layer}.attn_norm",
    "ffn_norm": "blk.{layer}.ffn_norm",
    "attention.q": "blk.{layer}.attn_q",
    "attention.k": "blk.{layer}.attn_k",
    "attention.v": "blk.{layer}.attn_v",
    "attention.o": "blk.{layer}.attn_output",
    "ffn.gate": "blk.{layer}.ffn_gate",
    "ffn.up": "blk.{layer}.ffn_up",
    "ffn.down": "blk.{layer}.ffn_down",
    "tokens": "token_embd",
    "final_norm": "output_norm",
    "head": "output",
}


def read_llama(file: GGUF) -> Checkpoint:
    """The checkpoint of a file of architecture `llama`, whose rows of q and k stand in pairs."""
    config = _config(file, "llama")
    attention = config.stack.attention
    changes = {
        "attention.q": partial(_half_split, heads=attention.heads),
        "attention.k": partial(_half_split, heads=attention.kv_heads),
    }
    return Checkpoint("llama", config, file, llama_like.table(config, NAMES, changes), ())


def read_qwen2(file: GGUF) -> Checkpoint:
    """The checkpoint of a file of architecture `qwen2`.

    llama.cpp rotates the halves of its heads as they are (`LLAMA_ROPE_TYPE_NEOX`), so no row moves.
    """
    config = _config(file, "qwen2")
    return Checkpoint("qwen2", config, file, llama_like.table(config, NAMES), ())


def _config(file: GGUF, architecture: str) -> TransformerConfig:
    prefix = f"{architecture}."
    own = [name for name in file.fields if name.startswith(prefix)]
    stated = {name.removeprefix(prefix): file.fields[name] for name in own}
    attributes = Attributes(stated, f"{file.origin}'s metadata")
    width, heads = attributes.integer("embedding_length"), attributes.integer("attention.head_count")
    head_width = attributes.divide("embedding_length", width, "attention.head_count", heads)
    head_width = attributes.integer("attention.key_length", head_width)
    if head_width % 2:
        raise ConfigError(f"A head width of {head_width} cannot be rotated in pairs: it must be even.")
    attributes.expect(**{"attention.value_length": head_width, "rope.dimension_count": head_width})
    attributes.expect(**{"rope.scaling.type": "none", "expert_count": 0, "expert_used_count": 0})
    vocabulary = file.rows("token_embd.weight")
    attributes.expect(vocab_size=vocabulary)
    stack = llama_like.decoder(
        layers=attributes.integer("block_count"),
        width=width,
        attention=AttentionConfig(
            heads,
            attributes.integer("attention.head_count_kv", heads),
            head_width,
            head_width**-0.5,
            qkv_bias="blk.0.attn_q.bias" in file.names,
            out_bias="blk.0.attn_output.bias" in file.names,
        ),
        feed_forward=FeedForwardConfig(
            attributes.integer("feed_forward_length"),
            "silu",
            gated=True,
            bias="blk.0.ffn_up.bias" in file.names,
        ),
        norm=RMSNorm(attributes.number("attention.layer_norm_rms_epsilon")),
        position=Rope(
            attributes.number("rope.freq_base", 10000.0),
            head_width,
            attributes.integer("context_length", limit=LARGEST_LENGTH),
        ),
    )
    attributes.finish()
    return llama_like.model(stack, vocabulary, tied="output.weight" not in file.names)


def _half_split(rows: Tensor, heads: int) -> Tensor:
    """Undoes llama.cpp's row order, which keeps the two rows of a plane side by side; ours keeps halves."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])  # [heads, K/2, 2, ...]
    return pairs.transpose(1, 2).reshape(rows.shape)
