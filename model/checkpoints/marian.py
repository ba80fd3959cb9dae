"""Marian (Junczys-Dowmunt et al. 2018): the 2017 Transformer, sinusoids and all, as opus-mt uses it."""

from collections.abc import Sequence

from torch import Tensor

from model.checkpoints import bart_like
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import EmbeddingConfig, EncoderConfig, HeadConfig, Sinusoidal, TransformerConfig

_IGNORED = (
    *bart_like.COPIES,
    Ignore(r"(encoder|decoder)\.embed_positions\.weight", "sinusoids, which are computed"),
)
_NO_EFFECT = ("static_position_embeddings", "extra_pos_embeddings", "force_bos_token_to_be_generated")


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a Marian folder."""
    config = _config(attributes)
    return Checkpoint("marian", config, WithoutPrefix(source, "model."), _table(config), _IGNORED)


def _config(attributes: Attributes) -> TransformerConfig:
    width, vocabulary = attributes.integer("d_model", 1024), attributes.integer("vocab_size", 58101)
    positions = Sinusoidal(
        attributes.integer("max_position_embeddings", 1024, LARGEST_LENGTH), interleaved=False
    )
    scale = width**0.5 if attributes.flag("scale_embedding", default=False) else None
    attributes.expect(tie_word_embeddings=True, share_encoder_decoder_embeddings=True)
    attributes.expect(decoder_vocab_size=vocabulary, normalize_before=False, normalize_embedding=False)
    attributes.expect(add_final_layer_norm=False, add_bias_logits=False)
    attributes.no_effect(*bart_like.NO_EFFECT, *_NO_EFFECT)
    encoder = bart_like.stack(attributes, bart_like.Shape("encoder", positions), width, "gelu")
    decoder = bart_like.stack(attributes, bart_like.Shape("decoder", positions), width, "gelu")
    embedding = EmbeddingConfig(vocabulary, None, None, scale)
    head = HeadConfig(tied=True, bias=True, transform=None)
    start = (attributes.index("decoder_start_token_id", 58100),)
    stop = (attributes.index("eos_token_id", 0),)
    return TransformerConfig(
        embedding, decoder, "logits", head, EncoderConfig(embedding, encoder), start, stop
    )


def _table(config: TransformerConfig) -> list[Take]:
    assert config.encoder is not None
    return [
        take(
            "shared.weight",
            "embeddings.tokens.weight",
            "encoder.front.tokens.weight",
            "head.projection.weight",
        ),
        take("final_logits_bias", "head.projection.bias", change=Tensor.squeeze),
        *bart_like.table(config.encoder.stack, "encoder.stack"),
        *bart_like.table(config.stack, "stack"),
    ]
