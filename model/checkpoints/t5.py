"""T5 (Raffel et al. 2020) and Flan-T5: encoder–decoder, relative biases, pre-norm RMSNorm, no scale."""

from collections.abc import Sequence
from dataclasses import replace

from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, linear, take
from model.checkpoints.source import Source
from model.config import (
    Activation,
    AttentionConfig,
    EmbeddingConfig,
    EncoderConfig,
    FeedForwardConfig,
    HeadConfig,
    RelativeBuckets,
    RMSNorm,
    StackConfig,
    TransformerConfig,
)
from model.rules import Bidirectional, Causal

# Feed-forward layers by name: the activation, and whether it is gated.
_FEED_FORWARD: dict[str, tuple[Activation, bool]] = {
    "relu": ("relu", False),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
}
_NO_EFFECT = ("dropout_rate", "classifier_dropout", "output_past")
_IGNORED = (
    Ignore(r"(encoder|decoder)\.embed_tokens\.weight", "tied", copy_of="shared.weight"),
    # An old checkpoint of the authors carries a table here that their code never reads.
    Ignore(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight", "never read"),
)


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a T5 folder."""
    config = _config(attributes, tied="lm_head.weight" not in source.names)
    return Checkpoint("t5", config, source, _table(config), _IGNORED)


def _config(attributes: Attributes, *, tied: bool) -> TransformerConfig:
    width, norm = attributes.integer("d_model", 512), RMSNorm(attributes.number("layer_norm_epsilon", 1e-6))
    heads, head_width = attributes.integer("num_heads", 8), attributes.integer("d_kv", 64)
    attention = AttentionConfig(heads, heads, head_width, 1.0, qkv_bias=False, out_bias=False)
    activation, gated = attributes.choice("feed_forward_proj", _FEED_FORWARD, "relu")
    attributes.expect(dense_act_fn={"gelu_tanh": "gelu_new"}.get(activation, activation), is_gated_act=gated)
    attributes.expect(is_encoder_decoder=True, is_decoder=False)
    attributes.no_effect(*_NO_EFFECT)
    layers = attributes.integer("num_layers", 6)
    encoder = StackConfig(
        name="encoder",
        layers=layers,
        width=width,
        attention=attention,
        feed_forward=FeedForwardConfig(attributes.integer("d_ff", 2048), activation, gated=gated, bias=False),
        norm=norm,
        norm_placement="pre",
        final_norm=True,
        position=_position(attributes),
        mask=Bidirectional(),
    )
    decoder = replace(
        encoder,
        name="decoder",
        layers=attributes.integer("num_decoder_layers", layers),
        mask=Causal(),
        cross=attention,
    )
    embedding = EmbeddingConfig(attributes.integer("vocab_size", 32128), None, None)
    # Where the configuration unties head and embedding, the last state is not scaled for it.
    scaled = attributes.flag(
        "scale_decoder_outputs", default=attributes.flag("tie_word_embeddings", default=True)
    )
    head = HeadConfig(tied=tied, bias=False, transform=None, scale=width**-0.5 if scaled else None)
    start = (attributes.index("decoder_start_token_id", 0),)
    stop = (attributes.index("eos_token_id", 1),)
    return TransformerConfig(
        embedding, decoder, "logits", head, EncoderConfig(embedding, encoder), start, stop
    )


def _position(attributes: Attributes) -> RelativeBuckets:
    return RelativeBuckets(
        attributes.integer("relative_attention_num_buckets", 32),
        attributes.integer("relative_attention_max_distance", 128),
        attributes.integer("n_positions", 512, LARGEST_LENGTH),
    )


def _table(config: TransformerConfig) -> list[Take]:
    assert config.encoder is not None
    assert config.head is not None
    words = ["embeddings.tokens.weight", "encoder.front.tokens.weight"]
    rows = [
        take("shared.weight", *words, *(["head.projection.weight"] if config.head.tied else [])),
        *_stack(config.encoder.stack, "encoder.stack"),
        *_stack(config.stack, "stack"),
    ]
    return rows if config.head.tied else [*rows, take("lm_head.weight", "head.projection.weight")]


def _stack(config: StackConfig, target: str) -> list[Take]:
    layer, block = f"{config.name}.block.{{layer}}.layer", f"{target}.blocks.{{layer}}"
    parts = [("attention", "SelfAttention"), *([("cross", "EncDecAttention")] if config.cross else [])]
    rows = []
    for place, (ours, theirs) in enumerate(parts):
        rows += [take(f"{layer}.{place}.layer_norm.weight", f"{block}.{ours}_norm.gain")]
        for name in "qkvo":
            rows += linear(f"{layer}.{place}.{theirs}.{name}", f"{block}.{ours}.{name}", bias=False)
    last = f"{layer}.{len(parts)}"
    rows += [take(f"{last}.layer_norm.weight", f"{block}.ffn_norm.gain")]
    names = (
        {"up": "wi_1", "gate": "wi_0", "down": "wo"}
        if config.feed_forward.gated
        else {"up": "wi", "down": "wo"}
    )
    for ours, theirs in names.items():
        rows += linear(f"{last}.DenseReluDense.{theirs}", f"{block}.ffn.{ours}", bias=False)
    first = f"{config.name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return [
        *(row.over(config.layers) for row in rows),
        take(first, f"{target}.bias.table"),
        take(f"{config.name}.final_layer_norm.weight", f"{target}.final_norm.gain"),
    ]
