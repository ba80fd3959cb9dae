"""Weights between words: a sum over pieces looked at, a mean over those that look (Clark et al. 2019)."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.reading import read
from model.labs.words import often
from model.loading import LoadedModel
from model.text import Encoded
from model.trace import SiteTrace

NAMED_IN_ERRORS = 12


@dataclass(frozen=True)
class Word:
    """A word of the text and its tokens. A special token is one of its own."""

    label: str
    tokens: tuple[int, ...]
    special: bool


def read_short(loaded: LoadedModel, model_id: str, text: str, limit: int) -> Encoded:
    """The tokens of a text that is drawn whole. Raises what `read` raises."""
    return read(loaded, model_id, text, limit)


def words_of(encoded: Encoded, text: str) -> list[Word]:
    """The words of a text in order; words that share a token are one."""
    groups: list[tuple[set[int], list[int]]] = []
    for index, token in enumerate(encoded.tokens):
        if groups and groups[-1][0].intersection(token.words):
            groups[-1][0].update(token.words)
            groups[-1][1].append(index)
        else:
            groups.append((set(token.words), [index]))
    return [_word(encoded, text, tokens) for _, tokens in groups]


def word_weights(weights: Tensor, words: Sequence[Word]) -> Tensor:
    """Weights between words [..., W, W] of weights between tokens [..., T, T]."""
    member = weights.new_zeros(len(words), weights.shape[-1])  # [W, T]
    for index, word in enumerate(words):
        member[index, list(word.tokens)] = 1.0
    share = member / member.sum(dim=1, keepdim=True)  # [W, T]
    return share @ weights @ member.mT  # [..., W, W]


def same_distance(weights: Tensor, words: Sequence[Word], looking: int, target: int) -> Tensor | None:
    """Mean weight [H] between the other words as far apart, of word weights [H, W, W]; None without any."""
    distance = target - looking
    others = [
        place
        for place in range(max(0, -distance), min(len(words), len(words) - distance))
        if place != looking and not words[place].special and not words[place + distance].special
    ]
    if not others:
        return None
    return weights[:, others, [place + distance for place in others]].mean(dim=1)  # [H]


def find_word(words: Sequence[Word], wanted: str, occurrence: int = 1, where: str = "The text") -> int:
    """The place of a word in `words`, whatever its case. Raises InputError where it is not there so often."""
    places = places_of(words, wanted)
    if not wanted.strip():
        raise InputError("The word to look for is empty: write one that stands in the text.", word=wanted)
    if not places:
        raise InputError(f"{where} has no word “{wanted}”: {_choose(words)}.", word=wanted)
    if occurrence > len(places):
        raise InputError(
            f"{where} has “{wanted}” {often(len(places))}, not {occurrence}: choose an earlier one.",
            word=wanted,
        )
    return places[occurrence - 1]


def places_of(words: Sequence[Word], wanted: str) -> list[int]:
    """Where a word stands, whatever its case, and however its accents are encoded."""
    return [place for place, word in enumerate(words) if _folded(word.label) == _folded(wanted)]


def repeated_note(words: Sequence[Word], taken: int, where: str = "the text") -> list[str]:
    """Says so where a word stands there several times, and which of them is taken."""
    places = places_of(words, words[taken].label)
    if len(places) == 1:
        return []
    number = places.index(taken) + 1
    return [f"“{words[taken].label}” stands {often(len(places))} in {where}: number {number} is taken."]


def all_weights(sites: Sequence[SiteTrace]) -> Tensor:
    """The patterns of all heads of these sites, layer by layer, on the CPU: [L · H, T, T]."""
    parts = [site.attention(site.all_heads, range(site.queries)) for site in sites]
    return torch.cat(parts).float().cpu()  # [L · H, T, T]


def _folded(word: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", word.strip()).casefold())


def _choose(words: Sequence[Word]) -> str:
    labels = list(dict.fromkeys(label for word in words if (label := word.label.strip())))
    if not labels:
        return "it has no words at all, so write some"
    named = ", ".join(labels[:NAMED_IN_ERRORS])
    return f"choose one of {named}{', …' if len(labels) > NAMED_IN_ERRORS else ''}"


def _word(encoded: Encoded, text: str, tokens: list[int]) -> Word:
    spans = [span for index in tokens if (span := encoded.tokens[index].span) is not None]
    shown = text[min(start for start, _ in spans) : max(end for _, end in spans)] if spans else ""
    first = encoded.tokens[tokens[0]]
    return Word(shown.strip() or first.text, tuple(tokens), first.special)
