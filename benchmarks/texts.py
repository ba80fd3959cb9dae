"""Texts of an exact number of tokens, each different, so that no server answers from what it kept."""

from random import Random

# Every one of them is a single token of both built-in models, with a space before it and without.
WORDS = (
    "the", "man", "and", "dog", "was", "not", "very", "old", "but", "they", "had", "seen", "that", "him",
    "her", "who", "by", "sea", "story", "about", "ship", "lost", "in", "many", "years", "before", "any", "of",
    "them", "were", "for", "with", "from", "one", "day", "house", "long", "way", "home",
)  # fmt: skip

SPECIAL_TOKENS = {"minilm": 2, "smollm2": 0}


def text_of(model: str, tokens: int, seed: int) -> str:
    """A text that `model` reads as `tokens` tokens, its special ones included."""
    draw = Random(seed * 1_000_003 + tokens)
    return " ".join(draw.choice(WORDS) for _ in range(tokens - SPECIAL_TOKENS[model]))
