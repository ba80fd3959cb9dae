"""Texts of an exact number of tokens, each different, so that no server answers from what it kept."""

import base64
import io
import wave
from array import array
from math import pi, sin
from random import Random

from model import zoo

SAMPLE_RATE = 16_000
FIRST_TEXT_TOKENS = 16
# Every one of them is a single token of minilm and smollm2, with a space before it and without.
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


def first_request(model: str) -> dict[str, object]:
    """What a model is asked first: a text it can read, or a second of sound without a target."""
    entry = zoo.entries()[model]
    if entry.family == "whisper":
        return {"model": model, "audio": base64.b64encode(_tone()).decode("ascii")}
    text = text_of(model, FIRST_TEXT_TOKENS, seed=0) if model in SPECIAL_TOKENS else entry.examples[0]
    return {"model": model, "text": text}


def _tone(seconds: float = 1.0, pitch: float = 440.0) -> bytes:
    """A WAV file with a tone."""
    count = int(seconds * SAMPLE_RATE)
    samples = array("h", (round(8000 * sin(2 * pi * pitch * i / SAMPLE_RATE)) for i in range(count)))
    with io.BytesIO() as file:
        with wave.open(file, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(samples.itemsize)
            sound.setframerate(SAMPLE_RATE)
            sound.writeframes(samples.tobytes())
        return file.getvalue()
