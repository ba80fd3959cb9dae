"""BERT (Devlin et al. 2019): encoder-only, learned positions, post-norm, GELU. Also MiniLM and SBERT."""

from collections.abc import Sequence
from functools import partial

from model.checkpoints import bert_like
from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, layer_norm, linear, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import EmbeddingConfig, HeadConfig, LayerNorm, Learned, TransformerConfig

_POOLER = ("fc_size", "num_attention_heads", "num_fc_layers", "size_per_head", "type")
_WHOLE = ("BertModel", "BertForMaskedLM", "BertForPreTraining")
_IGNORED = (
    *bert_like.IGNORED,
    Ignore(r"cls\.seq_relationship\.(weight|bias)", "next-sentence classifier, not shown"),
    Ignore(r"cls\.predictions\.decoder\.weight", "tied", copy_of="embeddings.word_embeddings.weight"),
    Ignore(r"cls\.predictions\.decoder\.bias", "tied", copy_of="cls.predictions.bias"),
)


def read(attributes: Attributes, source: Source, architectures: Sequence[str]) -> Checkpoint:
    """The checkpoint of a BERT folder, with its masked-token head where it has one, else an embedding's."""
    source = WithoutPrefix(source, "bert.")
    masked = "cls.predictions.bias" in source.names
    config = _config(attributes, masked=masked)
    notices = () if masked else bert_like.left_out(architectures, _WHOLE)
    return Checkpoint("bert", config, source, _table(source, masked=masked), _IGNORED, notices)


def _config(attributes: Attributes, *, masked: bool) -> TransformerConfig:
    norm = LayerNorm(attributes.number("layer_norm_eps", 1e-12))
    positions = attributes.integer("max_position_embeddings", 512, LARGEST_LENGTH)
    attributes.expect(pruned_heads={}, cross_attention_hidden_size=0)
    attributes.no_effect("directionality", *(f"pooler_{part}" for part in _POOLER))
    stack = bert_like.stack(attributes, norm, Learned(positions, 0))
    vocabulary, segments = attributes.integer("vocab_size", 30522), attributes.integer("type_vocab_size", 2)
    activation = attributes.choice("hidden_act", ACTIVATIONS, "gelu")
    head = HeadConfig(tied=True, bias=True, transform=(activation, norm)) if masked else None
    embedding = EmbeddingConfig(vocabulary, segments, norm)
    return TransformerConfig(embedding, stack, "masked" if masked else "embedding", head)


def _table(source: Source, *, masked: bool) -> list[Take]:
    # Checkpoints converted from TensorFlow call a norm's gain and bias gamma and beta.
    old = "embeddings.LayerNorm.gamma" in source.names
    names = ("gamma", "beta") if old else ("weight", "bias")
    table = bert_like.table(masked=masked, norm_names=names)
    if masked:
        norm = partial(layer_norm, names=names)
        table += [take("cls.predictions.bias", "head.projection.bias")]
        table += linear("cls.predictions.transform.dense", "head.dense")
        table += norm("cls.predictions.transform.LayerNorm", "head.norm")
    return table
