"""Tiny random models of every shape there is, in fp64: no checkpoint, no rounding for an error to hide in."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from model.config import (
    AlibiPosition,
    AttentionConfig,
    AudioConfig,
    EmbeddingConfig,
    EncoderConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerNorm,
    Learned,
    NoPosition,
    Position,
    RelativeBuckets,
    RMSNorm,
    Rope,
    Sinusoidal,
    StackConfig,
    TransformerConfig,
)
from model.inputs import Inputs
from model.plan import Plan
from model.recorder import Recordable
from model.rules import Bidirectional, Causal, Window
from model.trace import Trace
from model.transformer import Transformer

WIDTH, HEADS, HEAD_WIDTH, VOCABULARY, LONGEST = 20, 4, 6, 31, 40
TOKENS, SOURCE_TOKENS = 9, 12
EVERYTHING: tuple[Recordable, ...] = (
    *("resid", "mid", "attn_out", "cross_out", "ffn_out", "head_out", "ffn_pre", "ffn_act", "norms"),
)

LEARNED = Learned(LONGEST + 2, offset=2)
ROPE = Rope(50.0, 4, LONGEST)
BUCKETS = RelativeBuckets(buckets=6, max_distance=7, max_positions=LONGEST)
_ATTENTION = AttentionConfig(HEADS, HEADS, HEAD_WIDTH, HEAD_WIDTH**-0.5, qkv_bias=True, out_bias=True)
_ENCODER = StackConfig(
    name="encoder",
    layers=3,
    width=WIDTH,
    attention=_ATTENTION,
    feed_forward=FeedForwardConfig(26, "gelu", gated=False, bias=True),
    norm=LayerNorm(1e-2),
    norm_placement="post",
    final_norm=False,
    position=LEARNED,
    mask=Bidirectional(),
)
_DECODER = replace(
    _ENCODER,
    name="decoder",
    attention=replace(_ATTENTION, kv_heads=2, qkv_bias=False),
    feed_forward=FeedForwardConfig(22, "silu", gated=True, bias=False),
    norm=RMSNorm(1e-2),
    norm_placement="pre",
    final_norm=True,
    position=ROPE,
    mask=Causal(),
)
_BESIDE = replace(_DECODER, layers=2, cross=_ATTENTION, attention=_ATTENTION)
_SPEECH = replace(_ENCODER, norm_placement="pre", final_norm=True, position=Learned(SOURCE_TOKENS, 0))


def _alone(stack: StackConfig) -> TransformerConfig:
    head = HeadConfig(tied=False, bias=True, transform=None)
    segments = 2 if stack.name == "encoder" else None
    return TransformerConfig(EmbeddingConfig(VOCABULARY, segments, None), stack, "logits", head, stop=(1,))


def _beside(encoder: StackConfig, decoder: StackConfig, *, sound: bool = False) -> TransformerConfig:
    front = AudioConfig(5, SOURCE_TOKENS) if sound else EmbeddingConfig(VOCABULARY, None, None)
    return replace(
        _alone(decoder),
        embedding=EmbeddingConfig(VOCABULARY, None, None),
        encoder=EncoderConfig(front, encoder),
    )


def at(position: Position, stack: StackConfig = _DECODER) -> TransformerConfig:
    """A model of one stack with these positions."""
    return _alone(replace(stack, position=position))


CONFIGS: dict[str, TransformerConfig] = {
    "encoder, learned, post-norm": _alone(_ENCODER),
    "encoder, sinusoids, shared layers": _alone(
        replace(_ENCODER, position=Sinusoidal(LONGEST, interleaved=True), shared=True)
    ),
    "decoder, rotary, grouped": _alone(_DECODER),
    "decoder, ALiBi, scale by layer": _alone(
        replace(_DECODER, position=AlibiPosition(LONGEST), attention=replace(_ATTENTION, scale_by_layer=True))
    ),
    "decoder, no positions": at(NoPosition(LONGEST)),
    "decoder, parallel": _alone(replace(_DECODER, parallel=True, norm=LayerNorm(1e-2))),
    "decoder, norms on both sides, soft-cap, windows": _alone(
        replace(
            _DECODER,
            norm_placement="both",
            attention=replace(_ATTENTION, kv_heads=1, softcap=3.0, qk_norm=RMSNorm(1e-2)),
            mask=Window(3, 0),
            layer_masks=(Window(3, 0), Causal(), Window(3, 0)),
        )
    ),
    "encoder–decoder, relative": _beside(
        replace(_ENCODER, norm_placement="pre", final_norm=True, position=BUCKETS),
        replace(_BESIDE, position=BUCKETS),
    ),
    "encoder–decoder, sinusoids, post-norm": _beside(
        replace(_ENCODER, position=Sinusoidal(LONGEST, interleaved=False)),
        replace(
            _BESIDE, position=Sinusoidal(LONGEST, interleaved=False), norm_placement="post", final_norm=False
        ),
    ),
    "speech": _beside(_SPEECH, replace(_BESIDE, position=Learned(LONGEST, 0)), sound=True),
}
NAMES = tuple(CONFIGS)
ALONE = tuple(name for name, config in CONFIGS.items() if config.encoder is None)
BESIDE = tuple(name for name, config in CONFIGS.items() if config.encoder is not None)


def build(config: TransformerConfig | str, seed: int = 0) -> Transformer:
    """A model with random weights, gains and biases, in fp64."""
    model = Transformer(CONFIGS[config] if isinstance(config, str) else config).double().eval()
    random = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        drawn = torch.randn(parameter.shape, generator=random, dtype=torch.float64) * 0.35
        parameter.data = drawn + float(name.endswith("gain"))
    return model.requires_grad_(requires_grad=False)


def inputs(model: Transformer, tokens: int = TOKENS, seed: int = 0) -> Inputs:
    """A random input of the kind a model reads."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(VOCABULARY, (1, tokens), generator=random)
    encoder = model.config.encoder
    if encoder is None:
        return Inputs(ids)
    if isinstance(encoder.front, AudioConfig):
        size = (1, encoder.front.mel_bins, 2 * encoder.front.frames)
        return Inputs(ids, mel=torch.randn(size, generator=random, dtype=torch.float64))
    return Inputs(ids, source=Inputs(torch.randint(VOCABULARY, (1, SOURCE_TOKENS), generator=random)))


def trace(
    model: Transformer,
    plan: Sequence[object] = (),
    given: Inputs | None = None,
    record: Iterable[Recordable] = (),
) -> Trace:
    """A run under a plan, with its logits."""
    given = given or inputs(model)
    return model.trace(given, Plan.parse(list(plan)), record, range(given.tokens))


def weights(ran: Trace, site: str) -> Tensor:
    """The attention of every head and row of a site, [H, T, S]."""
    found = ran.sites[site]
    return found.attention(found.all_heads, range(found.queries))


def block(model: Transformer, stack: str, layer: int) -> torch.nn.Module:
    """One block of a model."""
    where = model.encoder.stack if model.encoder is not None and stack == "encoder" else model.stack
    return where.blocks[layer]


def assert_same(found: Tensor, expected: Tensor, bound: float = 1e-10) -> None:
    """Fails unless two tensors agree within `bound`, relative to the larger of 1 and the largest value."""
    assert found.shape == expected.shape
    assert (found - expected).abs().max() <= bound * max(1.0, expected.abs().max().item())


def assert_differ(found: Tensor, expected: Tensor, bound: float = 1e-3) -> None:
    """Fails where two tensors agree."""
    assert (found - expected).abs().max() > bound
