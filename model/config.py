"""The configuration tree of a Transformer: one small frozen value for each variation.

Nothing whose wrong value would be silent has a default (eps, rope base, scale, direction): whoever builds a
config, usually a reader in `model.checkpoints`, must state it.
"""

from dataclasses import dataclass
from typing import Literal

from model.rules import MaskRule

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
StackName = Literal["encoder", "decoder"]
Readout = Literal["logits", "masked", "embedding"]


@dataclass(frozen=True)
class Learned:
    """One trained vector a position, added to the embedding (Gehring et al. 2017; BERT)."""

    rows: int


@dataclass(frozen=True)
class Rope:
    """Rotary embedding of q and k, half-split layout (Su et al. 2021; equation 34).

    `max_positions` is the length the model was trained for, not a table's size.
    """

    base: float
    max_positions: int


@dataclass(frozen=True)
class NoPosition:
    """Order enters through the mask alone."""

    max_positions: int


Position = Learned | Rope | NoPosition


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
    """Multi-head attention; kv_heads < heads is grouped-query, 1 is multi-query (Ainslie et al. 2023)."""

    heads: int
    kv_heads: int
    head_width: int
    scale: float
    qkv_bias: bool
    out_bias: bool


@dataclass(frozen=True)
class FeedForwardConfig:
    """Position-wise feed-forward layer; gated is W_down(act(W_gate x) · W_up x) (Shazeer 2020)."""

    width: int
    activation: Activation
    gated: bool
    bias: bool


@dataclass(frozen=True)
class StackConfig:
    """A stack of equal blocks."""

    name: StackName
    layers: int
    width: int
    attention: AttentionConfig
    feed_forward: FeedForwardConfig
    norm: Norm
    norm_placement: Literal["pre", "post"]
    final_norm: bool
    position: Position
    mask: MaskRule

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the attention sites, first layer first."""
        return tuple(f"{self.name}.self.{layer}" for layer in range(self.layers))

    @property
    def max_tokens(self) -> int:
        """The longest input the positions of this stack provide for."""
        return self.position.rows if isinstance(self.position, Learned) else self.position.max_positions


@dataclass(frozen=True)
class EmbeddingConfig:
    """Token embedding, with segment embedding and norm where the family has them."""

    vocabulary: int
    segments: int | None
    norm: Norm | None


@dataclass(frozen=True)
class HeadConfig:
    """What turns the last hidden state into token logits.

    `transform` is BERT's dense layer with activation and norm before the vocabulary (Devlin et al. 2019).
    """

    tied: bool
    bias: bool
    transform: tuple[Activation, Norm] | None


@dataclass(frozen=True)
class TransformerConfig:
    """The whole model. `head` is None exactly where the readout is an embedding."""

    embedding: EmbeddingConfig
    stack: StackConfig
    readout: Readout
    head: HeadConfig | None
