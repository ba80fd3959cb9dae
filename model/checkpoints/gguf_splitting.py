"""What the names in a GGUF file's `tokenizer.ggml.pre` stand for.

Sources: llama.cpp's `llama-vocab.cpp`, and the tokenizer.json of the model each name was made for. Names
that are not here are refused: a wrong cut gives wrong ids without any error.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Splitting:
    """How a byte-level tokenizer cuts the text into the pieces that it then merges within.

    `pattern` is the regular expression that cuts (None: GPT-2's own), `single_digits` cuts each digit off
    first, `nfc` composes characters before that, `ignore_merges` takes a piece that is itself a token as it
    is, and `adds_bos` says whether BOS is added where the file does not say.
    """

    pattern: str | None = None
    single_digits: bool = False
    nfc: bool = False
    ignore_merges: bool = False
    adds_bos: bool = False


_ENGLISH_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = rf"{_ENGLISH_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED_WORDS = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"

_GPT2 = Splitting()
_DIGITS = Splitting(single_digits=True)
_LLAMA3 = Splitting(rf"{_WORDS}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}", ignore_merges=True, adds_bos=True)
_QWEN2 = Splitting(rf"{_WORDS}|\p{{N}}|{_SIGNS}|{_SPACES}", nfc=True)
_TEKKEN = Splitting(
    rf"{_CASED_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}", ignore_merges=True, adds_bos=True
)

SPLITTINGS: Mapping[str, Splitting] = {
    "gpt-2": _GPT2,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "tekken": _TEKKEN,
}
