"""What a score is made of, as plain values: mask rules, and the score rule of one attention site.

These are data only; `masks` and `scores` evaluate them. Query i and key j are indices of the tokens that ran.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol

from pydantic import ConfigDict, Field, with_config

# Where a rule is read from outside, pydantic reads it: an unknown or mistyped field is an error, not a guess.
_outside = with_config(ConfigDict(extra="forbid"))
TokenCount = Annotated[int, Field(strict=True, ge=0, le=2**31)]


@_outside
@dataclass(frozen=True)
class Bidirectional:
    """Every query sees every key (Vaswani et al. 2017, encoder)."""

    name: Literal["bidirectional"] = "bidirectional"


@_outside
@dataclass(frozen=True)
class Causal:
    """Query i sees keys j <= i (Vaswani et al. 2017, section 3.2.3)."""

    name: Literal["causal"] = "causal"


@_outside
@dataclass(frozen=True)
class Anticausal:
    """Query i sees keys j >= i."""

    name: Literal["anticausal"] = "anticausal"


@_outside
@dataclass(frozen=True)
class Window:
    """Query i sees keys i - left <= j <= i + right (Beltagy et al. 2020, sliding window)."""

    left: TokenCount
    right: TokenCount
    name: Literal["window"] = "window"


@_outside
@dataclass(frozen=True)
class Prefix:
    """Causal, but the first `length` keys are seen by all (Raffel et al. 2020, prefix LM)."""

    length: TokenCount
    name: Literal["prefix"] = "prefix"


@_outside
@dataclass(frozen=True)
class Custom:
    """Query i sees key j where allow[i][j] is true."""

    allow: tuple[tuple[bool, ...], ...]
    name: Literal["custom"] = "custom"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Every head of every layer looks its mask up by hash, and hashing N × N entries takes milliseconds.
        return hash(self.allow)


@dataclass(frozen=True)
class Blocked:
    """Query i sees every key but those of its (i, j) pairs."""

    pairs: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class AllOf:
    """A key is seen where every one of the rules lets it be seen."""

    rules: "tuple[MaskRule, ...]"


StructuralRule = Bidirectional | Causal | Anticausal | Window | Prefix | Custom
MaskRule = StructuralRule | Blocked | AllOf


def mask_in_words(rule: MaskRule) -> str:
    """The rule as a reader would say it: "causal", "window 4 back, 0 ahead"."""
    match rule:
        case Window(left, right):
            return f"window {left} back, {right} ahead"
        case Prefix(length):
            return f"prefix of {length}"
        case Custom():
            return "custom"
        case Blocked(pairs):
            return "blocked " + ", ".join(f"{query} → {key}" for query, key in sorted(pairs))
        case AllOf(rules):
            return ", ".join(mask_in_words(part) for part in rules)
        case _:
            return rule.name


@dataclass(frozen=True)
class Uniform:
    """Every open key gets the same weight."""


@dataclass(frozen=True)
class Given:
    """These weights, row by row."""

    weights: tuple[tuple[float, ...], ...]


Pattern = Uniform | Given


class Bias(Protocol):
    """What positions add to scores."""

    def at(self, heads: range, query: Any, key: Any) -> Any:
        """The bias [H, T, S] of some heads for query positions [T] and key positions [S]."""


@dataclass(frozen=True)
class ScoreRule:
    """How one site turns q·k into attention: score = cap(q·k × scale) + bias, then mask, then softmax.

    `scales` and `masks` hold one entry a query head, because interventions may single heads out. `softcap` c
    bounds scaled scores smoothly, c · tanh(score / c) (Gemma Team 2024, section 2.2). `places` are the
    positions [T] that the bias is told instead of the tokens' indices. `patterns` replace whole heads'
    weights.
    """

    scales: tuple[float, ...]
    masks: tuple[MaskRule, ...]
    bias: Bias | None = None
    softcap: float | None = None
    places: Any = None
    patterns: "tuple[tuple[int, Pattern], ...]" = ()

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return len(self.scales)

    @property
    def shared_mask(self) -> MaskRule | None:
        """The mask of all heads, or None where heads differ."""
        first = self.masks[0]
        return first if all(mask == first for mask in self.masks) else None

    @property
    def shared_scale(self) -> float | None:
        """The scale of all heads, or None where heads differ."""
        first = self.scales[0]
        return first if all(scale == first for scale in self.scales) else None


def scale_in_words(scale: float, head_width: int) -> str:
    """`scale` as the formula it is, where it is one of the usual ones for d_k = `head_width`."""
    for name, value in (
        (f"1/√{head_width}", 1 / math.sqrt(head_width)),
        (f"1/{head_width}", 1 / head_width),
        ("1", 1.0),
    ):
        if math.isclose(scale, value, rel_tol=1e-12):
            return name
    return f"{scale:.6g}"
