"""Random tokens of a model's own vocabulary: all there is to notice in such a text is what repeats."""

import torch

from model.errors import InputError
from model.text import Encoded, TextEncoder

# Shorter ones are pieces of many words.
LETTERS = 3


def ordinary_tokens(encoder: TextEncoder, count: int, generator: torch.Generator) -> list[int]:
    """Distinct tokens at random: words where the vocabulary has enough. Raises InputError for a tiny one."""
    order = torch.randperm(encoder.vocab_size, generator=generator).tolist()
    words: list[int] = []
    others: list[int] = []
    for token_id in order:
        (token,) = encoder.describe([token_id])
        if token.special or not token.text.strip():
            continue
        text = token.text.strip()
        (words if len(text) >= LETTERS and text.isascii() and text.isalpha() else others).append(token_id)
        if len(words) == count:
            return words
    drawn = (words + others)[:count]
    if len(drawn) < count:
        raise InputError(
            f"The model's vocabulary has {len(drawn)} tokens to draw from; the probe set needs {count}."
        )
    return drawn


def wrapped(encoder: TextEncoder, ids: list[int]) -> tuple[Encoded, int]:
    """Tokens within the special ones that the model's template puts around a text, and where they begin."""
    shell = encoder.encode("a")
    special = [token.special for token in shell.tokens]
    start, end = special.index(False), special[::-1].index(False)
    around = [*shell.ids[:start], *ids, *shell.ids[len(shell.ids) - end :]]
    segments = [shell.segments[0]] * len(around)
    return Encoded(around, segments, encoder.describe(around), []), start
