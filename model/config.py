"""The configuration tree of a Transformer: one small frozen value for each variation.

Nothing whose wrong value would be silent has a default (eps, rope base, scale, direction): whoever builds a
config, usually a reader in `model.checkpoints`, must state it.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from model.rules import Bidirectional, MaskRule


class Sites(Protocol):
    """Whatever has attention sites: a stack, or a whole model."""

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites."""

    def attention_of(self, site: str) -> "AttentionConfig":
        """The attention at a site."""

    def mask_of(self, site: str) -> MaskRule:
        """The structural mask of a site."""

    def scale_of(self, site: str) -> float:
        """The scale of q·k at a site."""


Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
StackName = Literal["encoder", "decoder"]
Readout = Literal["logits", "masked", "embedding"]


@dataclass(frozen=True)
class Learned:
    """One trained vector a position, added to the embedding (Gehring et al. 2017; BERT).

    Position p reads row p + `offset` of a table of `rows` (RoBERTa leaves its first rows to padding).
    """

    rows: int
    offset: int


@dataclass(frozen=True)
class Sinusoidal:
    """Fixed waves added to the embedding, each dimension pair its own wavelength (Vaswani et al. 2017, 3.5).

    The paper alternates sine and cosine; Marian keeps all sines first (`interleaved` false).
    """

    max_positions: int
    interleaved: bool


@dataclass(frozen=True)
class RelativeBuckets:
    """A trained bias a head and bucket of distance, shared by a stack's layers (Raffel et al. 2020, 2.1)."""

    buckets: int
    max_distance: int
    max_positions: int


@dataclass(frozen=True)
class Llama3Scaling:
    """Rope for longer texts: slow planes turn `factor` times slower, fast ones as before (Llama Team 2024).

    A plane is slow where it turns less than `low` times within `original` positions, fast where more than
    `high`.
    """

    factor: float
    low: float
    high: float
    original: int


@dataclass(frozen=True)
class Rope:
    """Rotary embedding of the first `width` components of q and k, half-split (Su et al. 2021, eq. 34).

    `max_positions` is the length the model was trained for, not a table's size.
    """

    base: float
    width: int
    max_positions: int
    scaling: Llama3Scaling | None = None


@dataclass(frozen=True)
class AlibiPosition:
    """A bias on the scores that grows with distance (Press et al. 2022)."""

    max_positions: int


@dataclass(frozen=True)
class NoPosition:
    """Order enters through the mask alone."""

    max_positions: int


Position = Learned | Sinusoidal | Rope | AlibiPosition | RelativeBuckets | NoPosition


@dataclass(frozen=True)
class LayerNorm:
    """(x - mean) / sqrt(var + eps) · gain + bias (Ba et al. 2016)."""

    eps: float


@dataclass(frozen=True)
class RMSNorm:
    """x / sqrt(mean(x²) + eps) · gain (Zhang and Sennrich 2019)."""

    eps: float


Norm = LayerNorm | RMSNorm


@dataclass(frozen=True)
class AttentionConfig:
    """Multi-head attention; kv_heads < heads is grouped-query, 1 is multi-query (Ainslie et al. 2023).

    `scale_by_layer` divides the scale by the layer's number, from 1 (GPT-2). `qk_norm` normalises every q and
    k vector before it is rotated (Qwen3), `softcap` bounds scores (Gemma 2). `bare_keys` have no bias where
    queries and values have one (Whisper).
    """

    heads: int
    kv_heads: int
    head_width: int
    scale: float
    qkv_bias: bool
    out_bias: bool
    bare_keys: bool = False
    scale_by_layer: bool = False
    qk_norm: "Norm | None" = None
    softcap: float | None = None


@dataclass(frozen=True)
class FeedForwardConfig:
    """Position-wise feed-forward layer; gated is W_down(act(W_gate x) · W_up x) (Shazeer 2020)."""

    width: int
    activation: Activation
    gated: bool
    bias: bool


@dataclass(frozen=True)
class StackConfig:
    """A stack of equal blocks.

    Norms stand before a sublayer, after the sum, or on both sides of a sublayer (Gemma 2). `parallel` blocks
    add attention and feed-forward of the same input (GPT-J). `shared` blocks all use one set of weights
    (ALBERT). `layer_masks` gives each layer its own mask where they differ, `mask` then being the first
    layer's.
    """

    name: StackName
    layers: int
    width: int
    attention: AttentionConfig
    feed_forward: FeedForwardConfig
    norm: Norm
    norm_placement: Literal["pre", "post", "both"]
    final_norm: bool
    position: Position
    mask: MaskRule
    layer_masks: tuple[MaskRule, ...] | None = None
    parallel: bool = False
    shared: bool = False
    cross: AttentionConfig | None = None

    @property
    def self_sites(self) -> tuple[str, ...]:
        """Names of the self-attention sites, first layer first."""
        return tuple(f"{self.name}.self.{layer}" for layer in range(self.layers))

    @property
    def cross_sites(self) -> tuple[str, ...]:
        """Names of the cross-attention sites, first layer first; none where the stack reads no other."""
        return tuple(f"{self.name}.cross.{layer}" for layer in range(self.layers)) if self.cross else ()

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of all attention sites."""
        return self.self_sites + self.cross_sites

    @property
    def max_tokens(self) -> int:
        """The longest input the positions of this stack provide for."""
        place = self.position
        return place.rows - place.offset if isinstance(place, Learned) else place.max_positions

    def attention_of(self, site: str) -> AttentionConfig:
        """The attention at a site."""
        return self.cross if self.cross is not None and site in self.cross_sites else self.attention

    def mask_of(self, site: str) -> MaskRule:
        """The structural mask of a site: every query of a cross-attention sees every key."""
        if site in self.cross_sites:
            return Bidirectional()
        return self.mask if self.layer_masks is None else self.layer_masks[layer_of(site)]

    def scale_of(self, site: str) -> float:
        """The scale of q·k at a site."""
        attention = self.attention_of(site)
        return attention.scale / (layer_of(site) + 1) if attention.scale_by_layer else attention.scale


@dataclass(frozen=True)
class EmbeddingConfig:
    """Token embedding, with segment embedding and norm where the family has them.

    `scale` multiplies token vectors (Vaswani et al. 2017, section 3.4). `width` is that of the embedding
    where a projection to the stack's width follows (ALBERT, Lan et al. 2020, section 3.1).
    """

    vocabulary: int
    segments: int | None
    norm: Norm | None
    scale: float | None = None
    width: int | None = None


@dataclass(frozen=True)
class AudioConfig:
    """A log-mel spectrogram through two convolutions, the second of stride 2 (Radford et al. 2022, 2.2)."""

    mel_bins: int
    frames: int


@dataclass(frozen=True)
class HeadConfig:
    """What turns the last hidden state into token logits.

    `transform` is BERT's dense layer with activation and norm before the vocabulary (Devlin et al. 2019), to
    `width` where that is not the stack's. `softcap` bounds logits (Gemma 2).
    """

    tied: bool
    bias: bool
    transform: tuple[Activation, Norm] | None
    width: int | None = None
    softcap: float | None = None
    scale: float | None = None


@dataclass(frozen=True)
class EncoderConfig:
    """The encoder that a decoder's cross-attention reads: a front (text or audio) and a stack."""

    front: EmbeddingConfig | AudioConfig
    stack: StackConfig


@dataclass(frozen=True)
class TransformerConfig:
    """The whole model. `head` is None exactly where the readout is an embedding.

    `stack` is the one whose last state is read out: an encoder-only model's encoder, else the decoder. An
    encoder–decoder model has an `encoder` beside it. `start` are the ids its decoder begins with, `stop`
    those that end a text.
    """

    embedding: EmbeddingConfig
    stack: StackConfig
    readout: Readout
    head: HeadConfig | None
    encoder: EncoderConfig | None = None
    start: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()

    @property
    def stacks(self) -> tuple[StackConfig, ...]:
        """All stacks in the order data flows."""
        return (self.stack,) if self.encoder is None else (self.encoder.stack, self.stack)

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of all attention sites in the order data flows: encoder, decoder, cross."""
        return tuple(site for stack in self.stacks for site in stack.sites)

    def stack_of(self, site: str) -> StackConfig:
        """The stack a site belongs to."""
        return next(stack for stack in self.stacks if site.startswith(f"{stack.name}."))

    def attention_of(self, site: str) -> AttentionConfig:
        """The attention at a site."""
        return self.stack_of(site).attention_of(site)

    def mask_of(self, site: str) -> MaskRule:
        """The structural mask of a site."""
        return self.stack_of(site).mask_of(site)

    def scale_of(self, site: str) -> float:
        """The scale of q·k at a site."""
        return self.stack_of(site).scale_of(site)


def layer_of(site: str) -> int:
    """The layer a site belongs to."""
    return int(site.rpartition(".")[2])
