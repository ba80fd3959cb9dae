"""LLaMA (Touvron et al. 2023): decoder-only, rotary positions, pre-norm RMSNorm, SwiGLU, grouped queries.

Two sources: a folder of safetensors with Hugging Face names, and a GGUF file with llama.cpp's.
"""

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor

from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.bert import ACTIVATIONS
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.gguf import GGUF
from model.checkpoints.mapping import Ignore, Take, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import (
    AttentionConfig,
    EmbeddingConfig,
    FeedForwardConfig,
    HeadConfig,
    RMSNorm,
    Rope,
    StackConfig,
    TransformerConfig,
)
from model.errors import ConfigError
from model.rules import Causal

HF_NAMES = {
    "attention_norm": "layers.{layer}.input_layernorm",
    "ffn_norm": "layers.{layer}.post_attention_layernorm",
    "attention.q": "layers.{layer}.self_attn.q_proj",
    "attention.k": "layers.{layer}.self_attn.k_proj",
    "attention.v": "layers.{layer}.self_attn.v_proj",
    "attention.o": "layers.{layer}.self_attn.o_proj",
    "ffn.gate": "layers.{layer}.mlp.gate_proj",
    "ffn.up": "layers.{layer}.mlp.up_proj",
    "ffn.down": "layers.{layer}.mlp.down_proj",
    "tokens": "embed_tokens",
    "final_norm": "norm",
    "head": "lm_head",
}
GGUF_NAMES = {
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
_FREQUENCIES = Ignore(
    r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", "derived from the rope base, not a weight"
)
_TIED = Ignore(r"lm_head\.weight", "tied", copy_of="embed_tokens.weight")


def read(attributes: Attributes, source: Source) -> Checkpoint:
    """The checkpoint of a folder with Hugging Face names."""
    source = WithoutPrefix(source, "model.")
    config = _config(attributes)
    tied = config.head is not None and config.head.tied
    ignored = (_FREQUENCIES, _TIED) if tied else (_FREQUENCIES,)
    return Checkpoint("llama", config, source, _table(config, HF_NAMES), ignored)


def read_gguf(file: GGUF) -> Checkpoint:
    """The checkpoint of a GGUF file of architecture `llama`."""
    config = _gguf_config(file)
    attention = config.stack.attention
    changes = {
        "attention.q": partial(_half_split, heads=attention.heads),
        "attention.k": partial(_half_split, heads=attention.kv_heads),
    }
    return Checkpoint("llama", config, file, _table(config, GGUF_NAMES, changes), ())


def _config(attributes: Attributes) -> TransformerConfig:
    width, heads = attributes.integer("hidden_size", 4096), attributes.integer("num_attention_heads", 32)
    if attributes.has("head_dim"):
        head_width = attributes.integer("head_dim")
    else:
        head_width = attributes.divide("hidden_size", width, "num_attention_heads", heads)
    attributes.expect(pretraining_tp=1, rope_interleaved=False, is_encoder_decoder=False)
    attributes.no_effect("attention_dropout", "is_llama_config")
    bias = attributes.flag("attention_bias", default=False)
    kv_heads = attributes.integer("num_key_value_heads", heads)
    stack = _decoder(
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
        norm=RMSNorm(attributes.number("rms_norm_eps", 1e-6)),
        position=Rope(
            _rope_base(attributes), attributes.integer("max_position_embeddings", 2048, LARGEST_LENGTH)
        ),
    )
    tied = attributes.flag("tie_word_embeddings", default=False)
    return _model(stack, attributes.integer("vocab_size", 32000), tied=tied)


def _rope_base(attributes: Attributes) -> float:
    """The base, from `rope_parameters` (transformers 5) or from `rope_theta` beside `rope_scaling`."""
    base = attributes.number("rope_theta", 10000.0)
    for name in ("rope_parameters", "rope_scaling"):
        stated = dict(attributes.mapping(name))
        kind = stated.pop("rope_type", stated.pop("type", "default"))
        if kind != "default":
            raise ConfigError(
                f"config.json gives {name} of type {kind!r}, which is not implemented.", attribute=name
            )
        nested = Attributes(stated, f"config.json's {name}")
        base = nested.number("rope_theta", base)
        nested.expect(partial_rotary_factor=1.0)
        nested.finish()
    return base


def _gguf_config(file: GGUF) -> TransformerConfig:
    own = [name for name in file.fields if name.startswith("llama.")]
    stated = {name.removeprefix("llama."): file.fields[name] for name in own}
    attributes = Attributes(stated, f"{file.origin}'s metadata")
    width, heads = attributes.integer("embedding_length"), attributes.integer("attention.head_count")
    head_width = attributes.divide("embedding_length", width, "attention.head_count", heads)
    head_width = attributes.integer("attention.key_length", head_width)
    attributes.expect(**{"attention.value_length": head_width, "rope.dimension_count": head_width})
    attributes.expect(**{"rope.scaling.type": "none", "expert_count": 0, "expert_used_count": 0})
    vocabulary = file.rows("token_embd.weight")
    attributes.expect(vocab_size=vocabulary)
    stack = _decoder(
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
            attributes.integer("context_length", limit=LARGEST_LENGTH),
        ),
    )
    attributes.finish()
    return _model(stack, vocabulary, tied="output.weight" not in file.names)


_decoder = partial(StackConfig, name="decoder", norm_placement="pre", final_norm=True, mask=Causal())


def _model(stack: StackConfig, vocabulary: int, *, tied: bool) -> TransformerConfig:
    heads, kv_heads, width = stack.attention.heads, stack.attention.kv_heads, stack.attention.head_width
    if heads % kv_heads:
        raise ConfigError(f"{heads} query heads cannot share {kv_heads} key heads evenly.")
    if width % 2:
        raise ConfigError(f"A head width of {width} cannot be rotated in pairs: it must be even.")
    embedding = EmbeddingConfig(vocabulary, segments=None, norm=None)
    return TransformerConfig(embedding, stack, "logits", HeadConfig(tied=tied, bias=False, transform=None))


def _table(
    config: TransformerConfig,
    names: Mapping[str, str],
    changes: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
) -> list[Take]:
    attention, ffn = config.stack.attention, config.stack.feed_forward
    biased = {
        **dict.fromkeys(("attention.q", "attention.k", "attention.v"), attention.qkv_bias),
        "attention.o": attention.out_bias,
        **dict.fromkeys(("ffn.gate", "ffn.up", "ffn.down"), ffn.bias),
    }
    tied = config.head is not None and config.head.tied
    words = ["embeddings.tokens.weight", *(["head.projection.weight"] if tied else [])]
    table = [
        take(f"{names['tokens']}.weight", *words),
        take(f"{names['final_norm']}.weight", "stack.final_norm.gain"),
        take(f"{names['attention_norm']}.weight", "stack.blocks.{layer}.attention_norm.gain"),
        take(f"{names['ffn_norm']}.weight", "stack.blocks.{layer}.ffn_norm.gain"),
    ]
    if not tied:
        table.append(take(f"{names['head']}.weight", "head.projection.weight"))
    for part, has_bias in biased.items():
        kinds = ("weight", "bias") if has_bias else ("weight",)
        target, change = f"stack.blocks.{{layer}}.{part}", (changes or {}).get(part)
        table += [take(f"{names[part]}.{kind}", f"{target}.{kind}", change=change) for kind in kinds]
    return table


def _half_split(rows: Tensor, heads: int) -> Tensor:
    """Undoes llama.cpp's row order, which keeps the two rows of a plane side by side; ours keeps halves."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])  # [heads, K/2, 2, ...]
    return pairs.transpose(1, 2).reshape(rows.shape)
