"""GPT-NeoX (Black et al. 2022), also Pythia: rotary positions on part of a head, parallel blocks."""

from collections.abc import Sequence

from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.fused_qkv import fused_qkv
from model.checkpoints.mapping import Ignore, Take, layer_norm, linear, take
from model.checkpoints.rope import read_rope
from model.checkpoints.source import Source, WithoutPrefix
from model.config import (
    AttentionConfig,
    EmbeddingConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerNorm,
    Rope,
    StackConfig,
    TransformerConfig,
)
from model.rules import Causal

_NO_EFFECT = ("attention_dropout", "hidden_dropout", "classifier_dropout", "is_decoder")
_IGNORED = (
    Ignore(r"layers\.\d+\.attention\.(bias|masked_bias)", "the causal mask as a table, not a weight"),
    Ignore(r"layers\.\d+\.attention\.rotary_emb\.inv_freq", "derived from the rope base, not a weight"),
)
_TIED = Ignore(r"embed_out\.weight", "tied", copy_of="embed_in.weight")


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a GPT-NeoX or Pythia folder."""
    config = _config(attributes)
    tied = config.head is not None and config.head.tied
    ignored = (*_IGNORED, _TIED) if tied else _IGNORED
    return Checkpoint("gpt_neox", config, WithoutPrefix(source, "gpt_neox."), _table(config), ignored)


def _config(attributes: Attributes) -> TransformerConfig:
    width, heads = attributes.integer("hidden_size", 6144), attributes.integer("num_attention_heads", 64)
    head_width = attributes.divide("hidden_size", width, "num_attention_heads", heads)
    bias = attributes.flag("attention_bias", default=True)
    attributes.no_effect(*_NO_EFFECT)
    stack = StackConfig(
        name="decoder",
        layers=attributes.integer("num_hidden_layers", 44),
        width=width,
        attention=AttentionConfig(heads, heads, head_width, head_width**-0.5, qkv_bias=bias, out_bias=bias),
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", 24576),
            attributes.choice("hidden_act", ACTIVATIONS, "gelu"),
            gated=False,
            bias=True,
        ),
        norm=LayerNorm(attributes.number("layer_norm_eps", 1e-5)),
        norm_placement="pre",
        final_norm=True,
        position=_rope(attributes, head_width),
        mask=Causal(),
        parallel=attributes.flag("use_parallel_residual", default=True),
    )
    embedding = EmbeddingConfig(attributes.integer("vocab_size", 50432), segments=None, norm=None)
    tied = attributes.flag("tie_word_embeddings", default=False)
    return TransformerConfig(embedding, stack, "logits", HeadConfig(tied=tied, bias=False, transform=None))


def _rope(attributes: Attributes, head_width: int) -> Rope:
    longest = attributes.integer("max_position_embeddings", 2048, LARGEST_LENGTH)
    share = attributes.number("rotary_pct", 0.25)
    base = attributes.number("rotary_emb_base", 10000.0)
    return read_rope(attributes, head_width, longest, share, base)


def _table(config: TransformerConfig) -> list[Take]:
    layer, block, attention = "layers.{layer}", "stack.blocks.{layer}", config.stack.attention
    tied = config.head is not None and config.head.tied
    words = ["embeddings.tokens.weight", *(["head.projection.weight"] if tied else [])]
    rows = [
        take("embed_in.weight", *words),
        *layer_norm("final_layer_norm", "stack.final_norm"),
        *layer_norm(f"{layer}.input_layernorm", f"{block}.attention_norm"),
        *layer_norm(f"{layer}.post_attention_layernorm", f"{block}.ffn_norm"),
        *fused_qkv(
            f"{layer}.attention.query_key_value",
            f"{block}.attention",
            attention.heads,
            bias=attention.qkv_bias,
        ),
        *linear(f"{layer}.attention.dense", f"{block}.attention.o", bias=attention.out_bias),
        *linear(f"{layer}.mlp.dense_h_to_4h", f"{block}.ffn.up"),
        *linear(f"{layer}.mlp.dense_4h_to_h", f"{block}.ffn.down"),
    ]
    return rows if tied else [*rows, take("embed_out.weight", "head.projection.weight")]
