"""DistilBERT (Sanh et al. 2019): BERT with half the layers and no segments."""

from collections.abc import Sequence

from model.checkpoints import bert_like
from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, layer_norm, linear, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import (
    AttentionConfig,
    EmbeddingConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerNorm,
    Learned,
    TransformerConfig,
)

# DistilBERT's code fixes this, so its configurations do not state it.
_EPS = 1e-12
# The position table is stored also where it was filled with sinusoids.
_NO_EFFECT = (
    *("dropout", "attention_dropout", "qa_dropout", "seq_classif_dropout"),
    *("sinusoidal_pos_embds", "tie_weights_"),
)
_WHOLE = ("DistilBertModel", "DistilBertForMaskedLM")
_IGNORED = (
    *bert_like.IGNORED,
    Ignore(r"vocab_projector\.weight", "tied", copy_of="embeddings.word_embeddings.weight"),
    Ignore(r"pre_classifier\.(weight|bias)", "a task's classifier, not shown"),
)


def read(attributes: Attributes, source: Source, architectures: Sequence[str]) -> Checkpoint:
    """The checkpoint of a DistilBERT folder, with its masked-token head where it has one."""
    source = WithoutPrefix(source, "distilbert.")
    masked = "vocab_projector.bias" in source.names
    config = _config(attributes, masked=masked)
    notices = () if masked else bert_like.left_out(architectures, _WHOLE)
    return Checkpoint("distilbert", config, source, _table(masked=masked), _IGNORED, notices)


def _config(attributes: Attributes, *, masked: bool) -> TransformerConfig:
    width, heads = attributes.integer("dim", 768), attributes.integer("n_heads", 12)
    head_width = attributes.divide("dim", width, "n_heads", heads)
    activation, norm = attributes.choice("activation", ACTIVATIONS, "gelu"), LayerNorm(_EPS)
    attributes.expect(tie_word_embeddings=True, is_encoder_decoder=False)
    attributes.no_effect(*_NO_EFFECT)
    stack = bert_like.encoder(
        layers=attributes.integer("n_layers", 6),
        width=width,
        attention=AttentionConfig(heads, heads, head_width, head_width**-0.5, qkv_bias=True, out_bias=True),
        feed_forward=FeedForwardConfig(
            attributes.integer("hidden_dim", 3072), activation, gated=False, bias=True
        ),
        norm=norm,
        position=Learned(attributes.integer("max_position_embeddings", 512, LARGEST_LENGTH), 0),
    )
    embedding = EmbeddingConfig(attributes.integer("vocab_size", 30522), segments=None, norm=norm)
    head = HeadConfig(tied=True, bias=True, transform=(activation, norm)) if masked else None
    return TransformerConfig(embedding, stack, "masked" if masked else "embedding", head)


def _table(*, masked: bool) -> list[Take]:
    block, layer = "stack.blocks.{layer}", "transformer.layer.{layer}"
    words = ["embeddings.tokens.weight", *(["head.projection.weight"] if masked else [])]
    table = [
        take("embeddings.word_embeddings.weight", *words),
        take("embeddings.position_embeddings.weight", "embeddings.positions.weight"),
        *layer_norm("embeddings.LayerNorm", "embeddings.norm"),
        *linear(f"{layer}.attention.q_lin", f"{block}.attention.q"),
        *linear(f"{layer}.attention.k_lin", f"{block}.attention.k"),
        *linear(f"{layer}.attention.v_lin", f"{block}.attention.v"),
        *linear(f"{layer}.attention.out_lin", f"{block}.attention.o"),
        *layer_norm(f"{layer}.sa_layer_norm", f"{block}.attention_norm"),
        *linear(f"{layer}.ffn.lin1", f"{block}.ffn.up"),
        *linear(f"{layer}.ffn.lin2", f"{block}.ffn.down"),
        *layer_norm(f"{layer}.output_layer_norm", f"{block}.ffn_norm"),
    ]
    if masked:
        table += [take("vocab_projector.bias", "head.projection.bias")]
        table += [*linear("vocab_transform", "head.dense"), *layer_norm("vocab_layer_norm", "head.norm")]
    return table
