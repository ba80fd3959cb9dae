"""What BART, Marian and Whisper share: the names and the shape of an encoder and a decoder beside it."""

from dataclasses import dataclass

from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import Attributes
from model.checkpoints.mapping import Ignore, Take, layer_norm, linear
from model.config import AttentionConfig, FeedForwardConfig, LayerNorm, Position, StackConfig, StackName
from model.rules import Bidirectional, Causal

# torch's default, which the code of these families leaves as it is.
NORM = LayerNorm(1e-5)
NO_EFFECT = (
    *("dropout", "attention_dropout", "activation_dropout", "classifier_dropout", "classif_dropout"),
    *("encoder_layerdrop", "decoder_layerdrop", "init_std", "forced_eos_token_id", "forced_bos_token_id"),
    *("num_hidden_layers", "gradient_checkpointing"),
    *("early_stopping", "num_beams", "max_length", "min_length", "length_penalty", "no_repeat_ngram_size"),
    *("bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "forced_decoder_ids", "num_labels"),
)
COPIES = (
    Ignore(r"(encoder|decoder)\.embed_tokens\.weight", "tied", copy_of="shared.weight"),
    Ignore(r"(lm_head|proj_out)\.weight", "tied", copy_of="shared.weight"),
)


@dataclass(frozen=True)
class Shape:
    """What a stack of these families has beyond its sizes."""

    name: StackName
    position: Position
    pre_norm: bool = False
    bare_keys: bool = False


def stack(attributes: Attributes, shape: Shape, width: int, activation: str) -> StackConfig:
    """The encoder or the decoder a configuration describes."""
    heads = attributes.integer(f"{shape.name}_attention_heads")
    head_width = attributes.divide("d_model", width, f"{shape.name}_attention_heads", heads)
    attributes.expect(is_encoder_decoder=True, is_decoder=False)
    attention = AttentionConfig(
        heads, heads, head_width, head_width**-0.5, qkv_bias=True, out_bias=True, bare_keys=shape.bare_keys
    )
    decoder = shape.name == "decoder"
    return StackConfig(
        name=shape.name,
        layers=attributes.integer(f"{shape.name}_layers"),
        width=width,
        attention=attention,
        feed_forward=FeedForwardConfig(
            attributes.integer(f"{shape.name}_ffn_dim"),
            attributes.choice("activation_function", ACTIVATIONS, activation),
            gated=False,
            bias=True,
        ),
        norm=NORM,
        norm_placement="pre" if shape.pre_norm else "post",
        final_norm=shape.pre_norm,
        position=shape.position,
        mask=Causal() if decoder else Bidirectional(),
        cross=attention if decoder else None,
    )


def table(config: StackConfig, target: str) -> list[Take]:
    """The mapping of the blocks of a stack, whose parameters are called `target`."""
    layer, block = f"{config.name}.layers.{{layer}}", f"{target}.blocks.{{layer}}"
    rows = [
        *_attention(f"{layer}.self_attn", f"{block}.attention", bare_keys=config.attention.bare_keys),
        *layer_norm(f"{layer}.self_attn_layer_norm", f"{block}.attention_norm"),
        *linear(f"{layer}.fc1", f"{block}.ffn.up"),
        *linear(f"{layer}.fc2", f"{block}.ffn.down"),
        *layer_norm(f"{layer}.final_layer_norm", f"{block}.ffn_norm"),
    ]
    if config.cross is not None:
        rows += _attention(f"{layer}.encoder_attn", f"{block}.cross", bare_keys=config.cross.bare_keys)
        rows += layer_norm(f"{layer}.encoder_attn_layer_norm", f"{block}.cross_norm")
    if config.final_norm:
        rows += layer_norm(f"{config.name}.layer_norm", f"{target}.final_norm")
    return [row.over(config.layers) for row in rows]


def _attention(source: str, target: str, *, bare_keys: bool) -> list[Take]:
    return [
        *linear(f"{source}.q_proj", f"{target}.q"),
        *linear(f"{source}.k_proj", f"{target}.k", bias=not bare_keys),
        *linear(f"{source}.v_proj", f"{target}.v"),
        *linear(f"{source}.out_proj", f"{target}.o"),
    ]
