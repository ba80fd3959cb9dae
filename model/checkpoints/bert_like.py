"""What BERT and the families after it share: the shape of their encoder and its names."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import Attributes
from model.checkpoints.mapping import Ignore, Take, layer_norm, linear, take
from model.config import AttentionConfig, FeedForwardConfig, LayerNorm, Learned, StackConfig
from model.rules import Bidirectional

IGNORED = (
    Ignore(r"embeddings\.position_ids", "a counter 0, 1, 2 …, not a weight"),
    Ignore(r"pooler\.dense\.(weight|bias)", "feeds classifiers only; the readout is the mean of the tokens"),
    Ignore(r"(classifier(\.dense|\.out_proj)?|qa_outputs)\.(weight|bias)", "a task's classifier, not shown"),
)
_DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")

encoder = partial(StackConfig, name="encoder", norm_placement="post", final_norm=False, mask=Bidirectional())


@dataclass(frozen=True)
class Sizes:
    """What a family's configurations mean where they state nothing."""

    width: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    activation: str = "gelu"


def stack(
    attributes: Attributes, norm: LayerNorm, position: Learned, sizes: Sizes | None = None
) -> StackConfig:
    """The encoder a BERT-like configuration describes; `sizes` are BERT's unless given."""
    sizes = sizes or Sizes()
    width = attributes.integer("hidden_size", sizes.width)
    heads = attributes.integer("num_attention_heads", sizes.heads)
    head_width = attributes.divide("hidden_size", width, "num_attention_heads", heads)
    attributes.expect(position_embedding_type="absolute", tie_word_embeddings=True)
    attributes.expect(is_decoder=False, is_encoder_decoder=False, add_cross_attention=False)
    attributes.no_effect(*_DROPOUT)
    return encoder(
        layers=attributes.integer("num_hidden_layers", sizes.layers),
        width=width,
        attention=AttentionConfig(heads, heads, head_width, head_width**-0.5, qkv_bias=True, out_bias=True),
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", sizes.feed_forward),
            attributes.choice("hidden_act", ACTIVATIONS, sizes.activation),
            gated=False,
            bias=True,
        ),
        norm=norm,
        position=position,
    )


def table(*, masked: bool, norm_names: tuple[str, str] = ("weight", "bias")) -> list[Take]:
    """The mapping of embeddings and blocks; `masked` models use the token embedding in their head."""
    block, layer = "stack.blocks.{layer}", "encoder.layer.{layer}"
    norm = partial(layer_norm, names=norm_names)
    words = ["embeddings.tokens.weight", *(["head.projection.weight"] if masked else [])]
    return [
        take("embeddings.word_embeddings.weight", *words),
        take("embeddings.position_embeddings.weight", "embeddings.positions.weight"),
        take("embeddings.token_type_embeddings.weight", "embeddings.segments.weight"),
        *norm("embeddings.LayerNorm", "embeddings.norm"),
        *linear(f"{layer}.attention.self.query", f"{block}.attention.q"),
        *linear(f"{layer}.attention.self.key", f"{block}.attention.k"),
        *linear(f"{layer}.attention.self.value", f"{block}.attention.v"),
        *linear(f"{layer}.attention.output.dense", f"{block}.attention.o"),
        *norm(f"{layer}.attention.output.LayerNorm", f"{block}.attention_norm"),
        *linear(f"{layer}.intermediate.dense", f"{block}.ffn.up"),
        *linear(f"{layer}.output.dense", f"{block}.ffn.down"),
        *norm(f"{layer}.output.LayerNorm", f"{block}.ffn_norm"),
    ]


def left_out(architectures: Sequence[str], whole: Sequence[str]) -> tuple[str, ...]:
    """What to tell the user of a checkpoint that is more than an encoder: its classifier is not shown."""
    return tuple(
        f"The checkpoint is a {name}: its classifier is left out, the mean of the token outputs is read."
        for name in architectures
        if name not in whole
    )
