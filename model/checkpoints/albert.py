"""ALBERT (Lan et al. 2020): BERT whose layers share one set of weights, with a narrow embedding."""

from collections.abc import Sequence
from dataclasses import replace

from model.checkpoints import bert_like
from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import EmbeddingConfig, HeadConfig, LayerNorm, Learned, TransformerConfig

_NO_EFFECT = (
    "classifier_dropout_prob",
    "down_scale_factor",
    "gap_size",
    "net_structure_type",
    "num_memory_blocks",
)
_WHOLE = ("AlbertModel", "AlbertForMaskedLM", "AlbertForPreTraining")
_IGNORED = (
    *bert_like.IGNORED,
    Ignore(r"pooler\.(weight|bias)", "feeds classifiers only; the readout is the mean of the tokens"),
    Ignore(r"sop_classifier\.classifier\.(weight|bias)", "sentence-order classifier, not shown"),
    Ignore(r"predictions\.decoder\.weight", "tied", copy_of="embeddings.word_embeddings.weight"),
    Ignore(r"predictions\.decoder\.bias", "tied", copy_of="predictions.bias"),
)
_LAYER = "encoder.albert_layer_groups.0.albert_layers.0"
_PARTS = {
    "attention.query": "attention.q",
    "attention.key": "attention.k",
    "attention.value": "attention.v",
    "attention.dense": "attention.o",
    "ffn": "ffn.up",
    "ffn_output": "ffn.down",
}
_NORMS = {"attention.LayerNorm": "attention_norm", "full_layer_layer_norm": "ffn_norm"}


def read(attributes: Attributes, source: Source, architectures: Sequence[str]) -> Checkpoint:
    """The checkpoint of an ALBERT folder, with its masked-token head where it has one."""
    source = WithoutPrefix(source, "albert.")
    masked = "predictions.bias" in source.names
    config = _config(attributes, masked=masked)
    table = _table(config.stack.layers, masked=masked)
    notices = () if masked else bert_like.left_out(architectures, _WHOLE)
    return Checkpoint("albert", config, source, table, _IGNORED, notices)


def _config(attributes: Attributes, *, masked: bool) -> TransformerConfig:
    norm = LayerNorm(attributes.number("layer_norm_eps", 1e-12))
    activation = attributes.choice("hidden_act", ACTIVATIONS, "gelu_new")
    positions = attributes.integer("max_position_embeddings", 512, LARGEST_LENGTH)
    attributes.expect(num_hidden_groups=1, inner_group_num=1)
    attributes.no_effect(*_NO_EFFECT)
    stack = replace(bert_like.stack(attributes, norm, Learned(positions, 0), _SIZES), shared=True)
    narrow = attributes.integer("embedding_size", 128)
    vocabulary, segments = attributes.integer("vocab_size", 30000), attributes.integer("type_vocab_size", 2)
    embedding = EmbeddingConfig(vocabulary, segments, norm, width=narrow)
    head = HeadConfig(tied=True, bias=True, transform=(activation, norm), width=narrow) if masked else None
    return TransformerConfig(embedding, stack, "masked" if masked else "embedding", head)


_SIZES = bert_like.Sizes(width=4096, layers=12, heads=64, feed_forward=16384, activation="gelu_new")


def _table(layers: int, *, masked: bool) -> list[Take]:
    words = ["embeddings.tokens.weight", *(["head.projection.weight"] if masked else [])]
    rows = [
        take("embeddings.word_embeddings.weight", *words),
        take("embeddings.position_embeddings.weight", "embeddings.positions.weight"),
        take("embeddings.token_type_embeddings.weight", "embeddings.segments.weight"),
        take("embeddings.LayerNorm.weight", "embeddings.norm.gain"),
        take("embeddings.LayerNorm.bias", "embeddings.norm.bias"),
        take("encoder.embedding_hidden_mapping_in.weight", "embeddings.projection.weight"),
        take("encoder.embedding_hidden_mapping_in.bias", "embeddings.projection.bias"),
    ]
    for name, part in _PARTS.items():
        rows += [_shared(f"{name}.{kind}", f"{part}.{kind}", layers) for kind in ("weight", "bias")]
    for name, part in _NORMS.items():
        rows += [
            _shared(f"{name}.weight", f"{part}.gain", layers),
            _shared(f"{name}.bias", f"{part}.bias", layers),
        ]
    if masked:
        rows += [
            take("predictions.bias", "head.projection.bias"),
            take("predictions.dense.weight", "head.dense.weight"),
            take("predictions.dense.bias", "head.dense.bias"),
            take("predictions.LayerNorm.weight", "head.norm.gain"),
            take("predictions.LayerNorm.bias", "head.norm.bias"),
        ]
    return rows


def _shared(name: str, part: str, layers: int) -> Take:
    """A tensor that every layer uses."""
    return take(f"{_LAYER}.{name}", *(f"stack.blocks.{layer}.{part}" for layer in range(layers)))
