"""What LLaMA and the families after it share: names, the shape of a block, and how to read both."""

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor

from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.mapping import Ignore, Take, linear, take
from model.config import (
    EmbeddingConfig,
    HeadConfig,
    RMSNorm,
    StackConfig,
    TransformerConfig,
)
from model.errors import ConfigError
from model.rules import Causal, MaskRule, Window

NAMES = {
    "attention_norm": "layers.{layer}.input_layernorm",
    "ffn_norm": "layers.{layer}.post_attention_layernorm",
    "attention.q": "layers.{layer}.self_attn.q_proj",
    "attention.k": "layers.{layer}.self_attn.k_proj",
    "attention.v": "layers.{layer}.self_attn.v_proj",
    "attention.o": "layers.{layer}.self_attn.o_proj",
    "attention.q_norm": "layers.{layer}.self_attn.q_norm",
    "attention.k_norm": "layers.{layer}.self_attn.k_norm",
    "ffn.gate": "layers.{layer}.mlp.gate_proj",
    "ffn.up": "layers.{layer}.mlp.up_proj",
    "ffn.down": "layers.{layer}.mlp.down_proj",
    "tokens": "embed_tokens",
    "final_norm": "norm",
    "head": "lm_head",
}
_FREQUENCIES = Ignore(
    r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", "derived from the rope base, not a weight"
)
_TIED = Ignore(r"lm_head\.weight", "tied", copy_of="embed_tokens.weight")

Change = Callable[[Tensor], Tensor]

decoder = partial(StackConfig, name="decoder", norm_placement="pre", final_norm=True, mask=Causal())


def head_width(attributes: Attributes, width: int, heads: int, default: int | None = None) -> int:
    """The width of a head: stated, else `default`, else the width shared out among the heads."""
    if attributes.has("head_dim") or default is not None:
        return attributes.integer("head_dim", default)
    return attributes.divide("hidden_size", width, "num_attention_heads", heads)


def rms_norm(attributes: Attributes) -> RMSNorm:
    """The norm of these families."""
    return RMSNorm(attributes.number("rms_norm_eps", 1e-6))


def max_positions(attributes: Attributes, default: int) -> int:
    """The length the model was trained for."""
    return attributes.integer("max_position_embeddings", default, LARGEST_LENGTH)


def layer_masks(attributes: Attributes, window: int | None, types: tuple[str, ...]) -> tuple[MaskRule, ...]:
    """The mask of each layer: causal, or where its type is sliding the last `window` keys, itself included.

    The configuration's `layer_types` stand in for `types` where it states them.
    """
    stated = attributes.words("layer_types")
    sliding = Causal() if window is None else Window(window - 1, 0)
    masks: dict[str, MaskRule] = {"full_attention": Causal(), "sliding_attention": sliding}
    if stated is not None:
        _check_types(stated, len(types), {*masks} if window is not None else {"full_attention"})
        types = stated
    return tuple(masks[kind] for kind in types)


def _check_types(types: tuple[str, ...], layers: int, known: set[str]) -> None:
    """Raises ConfigError unless there is a type for each layer, and each is one of those `known`."""
    if len(types) != layers:
        raise ConfigError(
            f"config.json gives layer_types for {len(types)} layers, but num_hidden_layers = {layers}.",
            attribute="layer_types",
        )
    unknown = [kind for kind in types if kind not in known]
    if "sliding_attention" in unknown:
        raise ConfigError(
            "config.json gives layer_types with 'sliding_attention', "
            "but sliding_window is null or use_sliding_window is false.",
            attribute="layer_types",
        )
    if unknown:
        raise ConfigError(
            f"config.json gives layer_types with {unknown[0]!r}, which is not implemented.",
            attribute="layer_types",
        )


def model(stack: StackConfig, vocabulary: int, *, tied: bool, **more: float | None) -> TransformerConfig:
    """The whole model around a stack. `more`: embedding scale (`scale`), cap on the logits (`softcap`)."""
    heads, kv_heads = stack.attention.heads, stack.attention.kv_heads
    if heads % kv_heads:
        raise ConfigError(f"{heads} query heads cannot share {kv_heads} key heads evenly.")
    embedding = EmbeddingConfig(vocabulary, segments=None, norm=None, scale=more.get("scale"))
    head = HeadConfig(tied=tied, bias=False, transform=None, softcap=more.get("softcap"))
    return TransformerConfig(embedding, stack, "logits", head)


def table(
    config: TransformerConfig,
    names: Mapping[str, str] = NAMES,
    changes: Mapping[str, Change] | None = None,
    gain: Change | None = None,
) -> list[Take]:
    """The mapping of a model under `names`; `changes` rearrange a part's rows, `gain` every norm's gain."""
    block, given = "stack.blocks.{layer}", changes or {}
    tied = config.head is not None and config.head.tied
    words = ["embeddings.tokens.weight", *(["head.projection.weight"] if tied else [])]
    rows = [
        take(f"{names['tokens']}.weight", *words),
        take(f"{names['final_norm']}.weight", "stack.final_norm.gain", change=gain),
    ]
    if not tied:
        rows.append(take(f"{names['head']}.weight", "head.projection.weight"))
    norms = _norms(config.stack)
    rows += [take(f"{names[part]}.weight", f"{block}.{part}.gain", change=gain) for part in norms]
    for part, bias in _biases(config.stack).items():
        rows += linear(names[part], f"{block}.{part}", bias=bias, change=given.get(part))
    return rows


def ignored(config: TransformerConfig) -> tuple[Ignore, ...]:
    """What a checkpoint may hold beside its weights; a tied one may still carry a copy of its embedding."""
    tied = config.head is not None and config.head.tied
    return (_FREQUENCIES, _TIED) if tied else (_FREQUENCIES,)


def _norms(stack: StackConfig) -> list[str]:
    both = ["attention_out_norm", "ffn_out_norm"] if stack.norm_placement == "both" else []
    of_heads = ["attention.q_norm", "attention.k_norm"] if stack.attention.qk_norm else []
    return ["attention_norm", "ffn_norm", *both, *of_heads]


def _biases(stack: StackConfig) -> dict[str, bool]:
    attention, ffn = stack.attention, stack.feed_forward
    return {
        **dict.fromkeys(("attention.q", "attention.k", "attention.v"), attention.qkv_bias),
        "attention.o": attention.out_bias,
        **dict.fromkeys(("ffn.gate", "ffn.up", "ffn.down"), ffn.bias),
    }
