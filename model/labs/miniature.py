"""A real architecture made small: its masks, norms and positions, with few and narrow random weights."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.config import (
    AttentionConfig,
    AudioConfig,
    EmbeddingConfig,
    EncoderConfig,
    Learned,
    Position,
    RelativeBuckets,
    Rope,
    StackConfig,
    TransformerConfig,
)
from model.inputs import Inputs
from model.transformer import Transformer

LAYERS, WIDTH, HEAD, HIDDEN = 2, 16, 8, 32
VOCABULARY, MELS, ROWS = 32, 8, 64


@dataclass(frozen=True)
class Arrived:
    """How far a change travelled: the largest change of an output, by output and by changed input.

    `own` [T, T] for changes of the tokens; `of_source` [T, S] for those of an encoder's source, or None.
    """

    own: Tensor
    of_source: Tensor | None


def miniature(config: TransformerConfig, seed: int) -> Transformer:
    """The model in fp64, its weights drawn at random."""
    encoder = config.encoder and EncoderConfig(_front(config.encoder.front), _stack(config.encoder.stack))
    head = config.head and replace(config.head, width=config.head.width and HIDDEN)
    embedding, stack = _embedding(config.embedding), _stack(config.stack)
    small = replace(config, embedding=embedding, stack=stack, encoder=encoder, head=head)
    model = Transformer(small).double().requires_grad_(requires_grad=False).eval()
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 4)
    return model


def given(model: Transformer, tokens: int, source: int, seed: int) -> Inputs:
    """One row of random inputs, with a source for a model that has an encoder beside its decoder."""
    generator = torch.Generator().manual_seed(seed)
    inputs = Inputs(torch.randint(VOCABULARY, (1, tokens), generator=generator))  # [1, T]
    encoder = model.config.encoder
    if encoder is None:
        return inputs
    if isinstance(encoder.front, AudioConfig):
        mel = torch.randn(1, MELS, 2 * source, generator=generator, dtype=torch.float64)  # [1, M, 2S]
        return replace(inputs, mel=mel)
    return replace(inputs, source=Inputs(torch.randint(VOCABULARY, (1, source), generator=generator)))


@torch.inference_mode()
def arrived(model: Transformer, tokens: int, source: int, seed: int) -> Arrived:
    """Changes one input after the other and says which outputs changed, all in one batch."""
    generator = torch.Generator().manual_seed(seed)
    beside = model.config.encoder is not None
    ids = torch.randint(VOCABULARY, (tokens,), generator=generator)  # [T]
    rows = torch.cat(
        (ids[None], _each_changed(ids), ids.expand(source if beside else 0, -1))
    )  # [1 + T + S, T]
    inputs = Inputs(rows)
    if model.config.encoder is not None:
        inputs = _with_source(model.config.encoder, inputs, source, generator)
    final = model(inputs)  # [1 + T + S, T, D]
    change = (final[1:] - final[:1]).abs().amax(dim=-1).mT  # [T, T + S]
    return Arrived(change[:, :tokens], change[:, tokens:] if beside else None)


def _with_source(encoder: EncoderConfig, inputs: Inputs, source: int, generator: torch.Generator) -> Inputs:
    """The inputs with a source, the same in all rows but the last S, which change one position of it each."""
    same = inputs.ids.shape[0] - source
    if isinstance(encoder.front, AudioConfig):
        mel = torch.randn(MELS, 2 * source, generator=generator, dtype=torch.float64)  # [M, 2S]
        places = torch.eye(source, dtype=torch.float64).repeat_interleave(2, dim=1)  # [S, 2S]
        changed = mel + places[:, None]  # [S, M, 2S]
        return replace(inputs, mel=torch.cat((mel.expand(same, -1, -1), changed)))
    ids = torch.randint(VOCABULARY, (source,), generator=generator)  # [S]
    return replace(inputs, source=Inputs(torch.cat((ids.expand(same, -1), _each_changed(ids)))))


def _each_changed(ids: Tensor) -> Tensor:
    """The ids [N] once for each of them, with that one replaced: [N, N]."""
    return (ids + torch.eye(len(ids), dtype=torch.long)) % VOCABULARY  # [N, N]


def _stack(stack: StackConfig) -> StackConfig:
    return replace(
        stack,
        layers=LAYERS,
        width=WIDTH,
        attention=_attention(stack.attention),
        cross=stack.cross and _attention(stack.cross),
        feed_forward=replace(stack.feed_forward, width=HIDDEN),
        position=_position(stack.position),
        layer_masks=stack.layer_masks and stack.layer_masks[:LAYERS],
    )


def _attention(attention: AttentionConfig) -> AttentionConfig:
    heads = WIDTH // HEAD
    grouped = attention.kv_heads < attention.heads
    return replace(attention, heads=heads, kv_heads=1 if grouped else heads, head_width=HEAD)


def _position(position: Position) -> Position:
    match position:
        case Learned(offset=offset):
            return Learned(ROWS + offset, offset)
        case Rope():
            return replace(position, width=HEAD)
        case RelativeBuckets():
            return replace(position, buckets=min(position.buckets, ROWS))
        case _:
            return position


def _embedding(embedding: EmbeddingConfig) -> EmbeddingConfig:
    segments = embedding.segments and min(embedding.segments, VOCABULARY)
    return replace(embedding, vocabulary=VOCABULARY, segments=segments, width=embedding.width and HIDDEN)


def _front(front: EmbeddingConfig | AudioConfig) -> EmbeddingConfig | AudioConfig:
    return AudioConfig(MELS, ROWS) if isinstance(front, AudioConfig) else _embedding(front)
