"""RoBERTa (Liu et al. 2019) and XLM-R (Conneau et al. 2020): BERT, positions counted after the padding id."""

from collections.abc import Sequence

from model.checkpoints import bert_like
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, layer_norm, linear, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import EmbeddingConfig, HeadConfig, LayerNorm, Learned, TransformerConfig
from model.errors import ConfigError

_WHOLE = ("RobertaModel", "RobertaForMaskedLM", "XLMRobertaModel", "XLMRobertaForMaskedLM")
_IGNORED = (
    *bert_like.IGNORED,
    Ignore(r"lm_head\.decoder\.weight", "tied", copy_of="embeddings.word_embeddings.weight"),
    Ignore(r"lm_head\.decoder\.bias", "tied", copy_of="lm_head.bias"),
)


def read(attributes: Attributes, source: Source, architectures: Sequence[str]) -> Checkpoint:
    """The checkpoint of a RoBERTa or XLM-R folder, with its masked-token head where it has one."""
    source = WithoutPrefix(source, "roberta.")
    masked = "lm_head.bias" in source.names
    config = _config(attributes, masked=masked)
    notices = () if masked else bert_like.left_out(architectures, _WHOLE)
    return Checkpoint("roberta", config, source, _table(masked=masked), _IGNORED, notices)


def _config(attributes: Attributes, *, masked: bool) -> TransformerConfig:
    norm = LayerNorm(attributes.number("layer_norm_eps", 1e-12))
    stack = bert_like.stack(attributes, norm, _positions(attributes))
    vocabulary, segments = attributes.integer("vocab_size", 50265), attributes.integer("type_vocab_size", 2)
    # The head's activation is GELU whatever hidden_act says.
    head = HeadConfig(tied=True, bias=True, transform=("gelu", norm)) if masked else None
    embedding = EmbeddingConfig(vocabulary, segments, norm)
    return TransformerConfig(embedding, stack, "masked" if masked else "embedding", head)


def _positions(attributes: Attributes) -> Learned:
    """The first token stands at the position after the padding id's."""
    rows = attributes.integer("max_position_embeddings", 512, LARGEST_LENGTH)
    offset = attributes.index("pad_token_id", 1) + 1
    if offset >= rows:
        raise ConfigError(f"config.json leaves no positions beside pad_token_id = {offset - 1}.")
    return Learned(rows, offset)


def _table(*, masked: bool) -> list[Take]:
    table = bert_like.table(masked=masked)
    if masked:
        table += [take("lm_head.bias", "head.projection.bias"), *linear("lm_head.dense", "head.dense")]
        table += layer_norm("lm_head.layer_norm", "head.norm")
    return table
