"""Weights between words: a sum over pieces looked at, a mean over those that look (Clark et al. 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import InputError, TooLong
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
    """The tokens of a text that is drawn whole. Raises what `read` raises, TooLong above `limit` too."""
    encoded = read(loaded, model_id, text)
    if len(encoded.ids) > limit:
        raise TooLong(
            f"The text has {len(encoded.ids)} tokens and this lab takes {limit}: shorten it.", limit=limit
        )
    return encoded


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
    places = [place for place, word in enumerate(words) if word.label.casefold() == wanted.strip().casefold()]
    if not places:
        named = ", ".join(word.label for word in words[:NAMED_IN_ERRORS])
        more = ", …" if len(words) > NAMED_IN_ERRORS else ""
        raise InputError(f"{where} has no word “{wanted}”: choose one of {named}{more}.", word=wanted)
    if occurrence > len(places):
        raise InputError(
            f"{where} has “{wanted}” {often(len(places))}, not {occurrence}: choose an earlier one.",
            word=wanted,
        )
    return places[occurrence - 1]


def all_weights(sites: Sequence[SiteTrace]) -> Tensor:
    """The patterns of all heads of these sites, layer by layer, on the CPU: [L · H, T, T]."""
    parts = [site.attention(site.all_heads, range(site.queries)) for site in sites]
    return torch.cat(parts).float().cpu()  # [L · H, T, T]


def _word(encoded: Encoded, text: str, tokens: list[int]) -> Word:
    spans = [span for index in tokens if (span := encoded.tokens[index].span) is not None]
    shown = text[min(start for start, _ in spans) : max(end for _, end in spans)] if spans else ""
    first = encoded.tokens[tokens[0]]
    return Word(shown.strip() or first.text, tuple(tokens), first.special)
