"""Whisper (Radford et al. 2022): speech in, text out; pre-norm, GELU, keys without bias."""

from collections.abc import Sequence

from model.checkpoints import bart_like
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, linear, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import AudioConfig, EmbeddingConfig, EncoderConfig, HeadConfig, Learned, TransformerConfig

_IGNORED = (Ignore(r"proj_out\.weight", "tied", copy_of="decoder.embed_tokens.weight"),)
_NO_EFFECT = (
    *("use_weighted_layer_sum", "classifier_proj_size", "median_filter_width", "alignment_heads", "lang_ids"),
    *("apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks"),
    *("mask_feature_prob", "mask_feature_length", "mask_feature_min_masks", "max_length", "is_multilingual"),
)


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a Whisper folder."""
    config = _config(attributes)
    return Checkpoint("whisper", config, WithoutPrefix(source, "model."), table(config), _IGNORED)


def _config(attributes: Attributes) -> TransformerConfig:
    width = attributes.integer("d_model", 384)
    frames = attributes.integer("max_source_positions", 1500, LARGEST_LENGTH)
    words = attributes.integer("max_target_positions", 448, LARGEST_LENGTH)
    attributes.expect(tie_word_embeddings=True, scale_embedding=False)
    attributes.no_effect(*bart_like.NO_EFFECT, *_NO_EFFECT)
    shapes = (
        bart_like.Shape("encoder", Learned(frames, 0), pre_norm=True, bare_keys=True),
        bart_like.Shape("decoder", Learned(words, 0), pre_norm=True, bare_keys=True),
    )
    encoder, decoder = (bart_like.stack(attributes, shape, width, "gelu") for shape in shapes)
    audio = AudioConfig(attributes.integer("num_mel_bins", 80), frames)
    embedding = EmbeddingConfig(attributes.integer("vocab_size", 51865), None, None)
    head = HeadConfig(tied=True, bias=False, transform=None)
    start = (attributes.index("decoder_start_token_id", 50257),)
    stop = (attributes.index("eos_token_id", 50256),)
    return TransformerConfig(embedding, decoder, "logits", head, EncoderConfig(audio, encoder), start, stop)


def table(config: TransformerConfig) -> list[Take]:
    """The mapping under Hugging Face's names."""
    assert config.encoder is not None
    return [
        take("decoder.embed_tokens.weight", "embeddings.tokens.weight", "head.projection.weight"),
        take("decoder.embed_positions.weight", "embeddings.positions.weight"),
        take("encoder.embed_positions.weight", "encoder.front.positions.weight"),
        *linear("encoder.conv1", "encoder.front.first"),
        *linear("encoder.conv2", "encoder.front.second"),
        *bart_like.table(config.encoder.stack, "encoder.stack"),
        *bart_like.table(config.stack, "stack"),
    ]
