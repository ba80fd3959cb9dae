"""Pairs up what two tokenisations of a text have in common, so that attention over it can be compared.

Attention to a unit of several pieces is the sum over its pieces; attention from it is their mean (Clark et
al. 2019, section 4.1). What has no partner is kept as one further column, so that every row still sums to 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from model.errors import InputError
from model.text import Encoded, Token


@dataclass(frozen=True)
class Alignment:
    """Units of A and B that correspond: `units_a[i]` and `units_b[i]` hold the token indices of unit i."""

    labels: list[str]
    units_a: list[list[int]]
    units_b: list[list[int]]
    tokens_a: int
    tokens_b: int
    same_tokens: bool

    @property
    def units(self) -> int:
        """Number U of units that both sides have."""
        return len(self.labels)

    @property
    def left_a(self) -> list[int]:
        """Tokens of A without partner in B."""
        return _left(self.units_a, self.tokens_a)

    @property
    def left_b(self) -> list[int]:
        """Tokens of B without partner in A."""
        return _left(self.units_b, self.tokens_b)

    def of_a(self, weights: Tensor) -> Tensor:
        """A's weights [H, T, S] between units, the last column for all that has no partner: [H, U, U+1]."""
        return _between(weights, self.units_a)

    def of_b(self, weights: Tensor) -> Tensor:
        """B's weights [H, T, S] between units: [H, U, U+1]."""
        return _between(weights, self.units_b)

    def as_json(self) -> list[dict[str, object]]:
        """The units as the API shows them."""
        units = zip(self.labels, self.units_a, self.units_b, strict=True)
        return [{"label": label, "a": a, "b": b} for label, a, b in units]


def identity(keys: int) -> Alignment:
    """Every key with itself, and every query, for attention to what both sides have alike."""
    units = [[index] for index in range(keys)]
    return Alignment([""] * len(units), units, units, len(units), len(units), same_tokens=True)


def align(a: Encoded, b: Encoded, by: Literal["token", "word"], *, same_text: bool) -> Alignment:
    """Aligns two inputs. Raises InputError where they have nothing in common.

    By token: all tokens where both sides run the same ids, else those with the same span of the text. By
    word: words of both sides, merged where a token of either side spans several. Two different texts
    correspond where they begin alike and where they end alike.
    """
    same = a.ids == b.ids and a.segments == b.segments
    if by == "token" and same:
        pairs = [Unit(token.text, [i], [i]) for i, token in enumerate(a.tokens)]
    else:
        parts = _by_word if by == "word" else _by_span
        pairs = _same_places(parts, a, b) if same_text else _same_ends(parts, a, b)
    if not pairs:
        raise InputError(f"The two inputs have no {by} in common, so they cannot be compared by {by}.")
    labels, units_a, units_b = map(list, zip(*pairs, strict=True))
    return Alignment(labels, units_a, units_b, len(a.tokens), len(b.tokens), same)


class Unit(NamedTuple):
    """What corresponds: its text, and its token indices on either side."""

    label: str
    a: list[int]
    b: list[int]


Place = tuple[int, ...]
Places = dict[Place, list[int]]
Parts = Callable[[Sequence[Token], Sequence[Token]], tuple[Places, Places]]


def _same_places(parts: Parts, a: Encoded, b: Encoded) -> list[Unit]:
    in_a, in_b = parts(a.tokens, b.tokens)
    return [Unit(_text(a, in_a[place]), in_a[place], in_b[place]) for place in in_a if place in in_b]


def _same_ends(parts: Parts, a: Encoded, b: Encoded) -> list[Unit]:
    in_a, in_b = (list(parts(side.tokens, ())[0].values()) for side in (a, b))
    texts = [[_text(side, unit) for unit in units] for side, units in ((a, in_a), (b, in_b))]
    start = _shared(*texts)
    end = _shared(*(text[start:][::-1] for text in texts))
    pairs = [*zip(in_a[:start], in_b, strict=False), *zip(in_a[::-1][:end], in_b[::-1], strict=False)]
    return sorted((Unit(_text(a, x), x, y) for x, y in pairs), key=attrgetter("a"))


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    """How many texts at the start of both are the same, whatever their case."""
    pairs = zip(a, b, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].casefold() == pair[1].casefold(), pairs))


def _text(side: Encoded, unit: Sequence[int]) -> str:
    return "".join(side.tokens[i].text for i in unit).strip()


def _by_span(a: Sequence[Token], b: Sequence[Token]) -> tuple[Places, Places]:
    def places(tokens: Sequence[Token]) -> Places:
        found: Places = {}
        for index, token in enumerate(tokens):
            if token.span is not None:
                found.setdefault((token.segment, *token.span), []).append(index)
        return found

    return places(a), places(b)


def _by_word(a: Sequence[Token], b: Sequence[Token]) -> tuple[Places, Places]:
    merged = _Merged()
    for token in (*a, *b):
        merged.join(token.words)
    return merged.gather(a), merged.gather(b)


class _Merged:
    """Words, joined into one where a token spans several (union–find)."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def join(self, words: Sequence[int]) -> None:
        for word in words:
            self._parent[self._root(word)] = self._root(words[0])

    def gather(self, tokens: Sequence[Token]) -> Places:
        """Token indices of every merged word, in the order of the text."""
        found: Places = {}
        for index, token in enumerate(tokens):
            if token.words:
                found.setdefault((self._root(token.words[0]),), []).append(index)
        return found

    def _root(self, word: int) -> int:
        while self._parent.setdefault(word, word) != word:
            self._parent[word] = self._parent[self._parent[word]]
            word = self._parent[word]
        return word


def _left(units: Sequence[Sequence[int]], tokens: int) -> list[int]:
    aligned = {index for unit in units for index in unit}
    return [index for index in range(tokens) if index not in aligned]


def _between(weights: Tensor, units: Sequence[Sequence[int]]) -> Tensor:
    tokens = weights.shape[-1]
    if list(units) == [[index] for index in range(tokens)]:
        return F.pad(weights.float(), (0, 1))  # [H, T, T+1]
    members = torch.zeros(len(units) + 1, tokens)  # [U+1, T]
    for unit, indices in enumerate(units):
        members[unit, list(indices)] = 1.0
    members[-1] = 1.0 - members[:-1].sum(dim=0)
    means = members[:-1] / members[:-1].sum(dim=1, keepdim=True)  # [U, T]
    return means @ weights.float() @ members.mT  # [H, U, U+1]
