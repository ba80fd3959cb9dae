"""GPT-2 (Radford et al. 2019): decoder-only, learned positions, pre-norm, tanh GELU, q, k, v in one."""

from collections.abc import Sequence

from torch import Tensor

from model.checkpoints.activations import ACTIVATIONS
from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, layer_norm, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import (
    AttentionConfig,
    EmbeddingConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerNorm,
    Learned,
    StackConfig,
    TransformerConfig,
)
from model.rules import Causal

_TRAINING = ("attn_pdrop", "embd_pdrop", "resid_pdrop", "reorder_and_upcast_attn", "n_ctx")
_SUMMARY = tuple(
    f"summary_{part}" for part in ("activation", "first_dropout", "proj_to_labels", "type", "use_proj")
)
_IGNORED = (
    Ignore(r"h\.\d+\.attn\.(bias|masked_bias)", "the causal mask as a table, not a weight"),
    Ignore(r"lm_head\.weight", "tied", copy_of="wte.weight"),
)


def read(attributes: Attributes, source: Source, _: Sequence[str]) -> Checkpoint:
    """The checkpoint of a GPT-2 folder."""
    config = _config(attributes)
    return Checkpoint("gpt2", config, WithoutPrefix(source, "transformer."), _table(), _IGNORED)


def _config(attributes: Attributes) -> TransformerConfig:
    width, heads = attributes.integer("n_embd", 768), attributes.integer("n_head", 12)
    head_width = attributes.divide("n_embd", width, "n_head", heads)
    scaled = attributes.flag("scale_attn_weights", default=True)
    attributes.expect(add_cross_attention=False, is_encoder_decoder=False, tie_word_embeddings=True)
    attributes.no_effect(*_TRAINING, *_SUMMARY)
    stack = StackConfig(
        name="decoder",
        layers=attributes.integer("n_layer", 12),
        width=width,
        attention=AttentionConfig(
            heads,
            heads,
            head_width,
            head_width**-0.5 if scaled else 1.0,
            qkv_bias=True,
            out_bias=True,
            scale_by_layer=attributes.flag("scale_attn_by_inverse_layer_idx", default=False),
        ),
        feed_forward=FeedForwardConfig(
            attributes.integer("n_inner", 4 * width),
            attributes.choice("activation_function", ACTIVATIONS, "gelu_new"),
            gated=False,
            bias=True,
        ),
        norm=LayerNorm(attributes.number("layer_norm_epsilon", 1e-5)),
        norm_placement="pre",
        final_norm=True,
        position=Learned(attributes.integer("n_positions", 1024, LARGEST_LENGTH), 0),
        mask=Causal(),
    )
    embedding = EmbeddingConfig(attributes.integer("vocab_size", 50257), segments=None, norm=None)
    return TransformerConfig(embedding, stack, "logits", HeadConfig(tied=True, bias=False, transform=None))


def _table() -> list[Take]:
    layer, block = "h.{layer}", "stack.blocks.{layer}"
    rows = [
        take("wte.weight", "embeddings.tokens.weight", "head.projection.weight"),
        take("wpe.weight", "embeddings.positions.weight"),
        *layer_norm("ln_f", "stack.final_norm"),
        *layer_norm(f"{layer}.ln_1", f"{block}.attention_norm"),
        *layer_norm(f"{layer}.ln_2", f"{block}.ffn_norm"),
        *_conv(f"{layer}.attn.c_proj", f"{block}.attention.o"),
        *_conv(f"{layer}.mlp.c_fc", f"{block}.ffn.up"),
        *_conv(f"{layer}.mlp.c_proj", f"{block}.ffn.down"),
    ]
    for part, name in enumerate("qkv"):
        rows.append(
            take(f"{layer}.attn.c_attn.weight", f"{block}.attention.{name}.weight", change=_Third(part))
        )
        rows.append(take(f"{layer}.attn.c_attn.bias", f"{block}.attention.{name}.bias", change=_Third(part)))
    return rows


def _conv(source: str, target: str) -> list[Take]:
    """The rows of GPT-2's Conv1D, a linear layer that keeps its weight transposed."""
    return [
        take(f"{source}.weight", f"{target}.weight", change=Tensor.t),
        take(f"{source}.bias", f"{target}.bias"),
    ]


class _Third:
    """One of the three equal parts along the last axis of a transposed q, k, v matrix, or of their bias."""

    def __init__(self, part: int) -> None:
        self.part = part

    def __call__(self, stacked: Tensor) -> Tensor:
        return stacked.chunk(3, dim=-1)[self.part].t().contiguous()
