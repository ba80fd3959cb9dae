"""BART (Lewis et al. 2020): encoder–decoder, learned positions, post-norm, GELU, a norm on the embeddings."""

from collections.abc import Sequence

from torch import Tensor

from model.checkpoints import bart_like
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Take, layer_norm, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import EmbeddingConfig, EncoderConfig, HeadConfig, Learned, TransformerConfig

# The first two rows of BART's position tables are never read.
_OFFSET = 2


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a BART folder."""
    source = WithoutPrefix(source, "model.")
    config = _config(attributes)
    biased = "final_logits_bias" in source.names
    return Checkpoint("bart", config, source, _table(config, biased=biased), bart_like.COPIES)


def _config(attributes: Attributes) -> TransformerConfig:
    width = attributes.integer("d_model", 1024)
    positions = Learned(
        attributes.integer("max_position_embeddings", 1024, LARGEST_LENGTH) + _OFFSET, _OFFSET
    )
    scale = width**0.5 if attributes.flag("scale_embedding", default=False) else None
    attributes.expect(tie_word_embeddings=True, normalize_before=False, normalize_embedding=True)
    attributes.expect(add_final_layer_norm=False, add_bias_logits=False)
    attributes.no_effect(*bart_like.NO_EFFECT)
    encoder = bart_like.stack(attributes, bart_like.Shape("encoder", positions), width, "gelu")
    decoder = bart_like.stack(attributes, bart_like.Shape("decoder", positions), width, "gelu")
    embedding = EmbeddingConfig(attributes.integer("vocab_size", 50265), None, bart_like.NORM, scale)
    head = HeadConfig(tied=True, bias=True, transform=None)
    start = (attributes.index("decoder_start_token_id", 2),)
    stop = (attributes.index("eos_token_id", 2),)
    return TransformerConfig(
        embedding, decoder, "logits", head, EncoderConfig(embedding, encoder), start, stop
    )


def _table(config: TransformerConfig, *, biased: bool) -> list[Take]:
    assert config.encoder is not None
    rows = [
        take(
            "shared.weight",
            "embeddings.tokens.weight",
            "encoder.front.tokens.weight",
            "head.projection.weight",
        ),
        take("encoder.embed_positions.weight", "encoder.front.positions.weight"),
        take("decoder.embed_positions.weight", "embeddings.positions.weight"),
        *layer_norm("encoder.layernorm_embedding", "encoder.front.norm"),
        *layer_norm("decoder.layernorm_embedding", "embeddings.norm"),
        *bart_like.table(config.encoder.stack, "encoder.stack"),
        *bart_like.table(config.stack, "stack"),
    ]
    return (
        [*rows, take("final_logits_bias", "head.projection.bias", change=Tensor.squeeze)] if biased else rows
    )
