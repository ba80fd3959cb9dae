"""Sentences about what a tokenizer did to a text that its tokens alone do not show."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress

from model.tokenizer_spec import SPACE_MARK
from model.words import WHITE_SPACE, Span

# A token of the text: its untrimmed span, and its name where it is one of the tokenizer's added tokens.
Piece = tuple[Span, str | None]

_MOST_NAMED = 5
_LONGEST_QUOTE = 20
_SPACES = WHITE_SPACE + SPACE_MARK
_white_runs = re.compile(f"[{WHITE_SPACE}]+")


def notices_of(
    texts: Sequence[str],
    pieces: Sequence[Sequence[Piece]],
    normalise: Callable[[str], str] | None,
    unknown: str | None,
) -> list[str]:
    """What the user must know about `texts`, given the pieces of each.

    `normalise` is the tokenizer's normaliser, `unknown` the name of its unknown token.
    """
    both = list(zip(texts, pieces, strict=True))
    named = [
        (text[start:end].strip(WHITE_SPACE), name) for text, cut in both for (start, end), name in cut if name
    ]
    missed = [(text, _uncovered(text, cut)) for text, cut in both]
    letters = {char: _bare(normalise(char)) for char in dict.fromkeys("".join(texts))} if normalise else {}
    found = [
        _unknown_notice([source for source, name in named if name == unknown != source], unknown),
        _special_notice([source for source, name in named if name == source]),
        _dropped_notice(letters, missed),
        _folded_notice(letters),
        _rewritten_notice(texts, letters, normalise),
        _white_space_notice(missed),
    ]
    return [notice for notice in found if notice]


def _uncovered(text: str, pieces: Sequence[Piece]) -> bytearray:
    """For each character of the text, 1 where no piece came from it."""
    missed = bytearray(b"\1" * len(text))
    for (start, end), _ in pieces:
        missed[start:end] = bytes(end - start)
    return missed


def _bare(text: str) -> str:
    return text.strip(_SPACES)


def _caseless(text: str) -> str:
    """Equal for texts that differ by case or canonical form only."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).lower())


def _unknown_notice(sources: Sequence[str], unknown: str | None) -> str | None:
    if not sources:
        return None
    pieces = "1 piece of the text is" if len(sources) == 1 else f"{len(sources)} pieces of the text are"
    quoted = _list(map(_quote, dict.fromkeys(sources)))
    return f"{pieces} unknown to this model's vocabulary: {quoted} became {unknown}."


def _special_notice(names: Sequence[str]) -> str | None:
    if not names:
        return None
    return f"Read as this model's own special token, not as letters: {_list(dict.fromkeys(names))}."


def _dropped_notice(letters: Mapping[str, str], missed: Sequence[tuple[str, bytearray]]) -> str | None:
    # A piece around a character that the normaliser drops hides it, so the normaliser is asked about each.
    dropped = [char for char, left in letters.items() if not left]
    dropped += [char for text, places in missed for char in compress(text, places)]
    characters = [char for char in dict.fromkeys(dropped) if char not in _SPACES]
    if not characters:
        return None
    return f"This model's tokenizer dropped {_list(map(_code_point, characters))}, which no token stands for."


def _folded_notice(letters: Mapping[str, str]) -> str | None:
    folded = [(char, left) for char, left in letters.items() if left and _caseless(left) != _caseless(char)]
    if not folded:
        return None
    return (
        f"This model's normaliser reads {_list(f'{_show(char)} as {_show(left)}' for char, left in folded)}."
    )


def _rewritten_notice(
    texts: Sequence[str], letters: Mapping[str, str], normalise: Callable[[str], str] | None
) -> str | None:
    """For rules that need more than one character to act, which asking about single ones cannot find."""
    for text in texts if normalise else ():
        apart = "".join(letters[char] for char in text)
        if normalise and _caseless(_unspaced(normalise(text))) != _caseless(_unspaced(apart)):
            return "This model's normaliser rewrites parts of the text: the tokens show what it read."
    return None


def _unspaced(text: str) -> str:
    return _white_runs.sub("", text).replace(SPACE_MARK, "")


def _white_space_notice(missed: Sequence[tuple[str, bytearray]]) -> str | None:
    for text, places in missed:
        for run in _white_runs.finditer(text):
            if run[0] != " " and all(places[slice(*run.span())]):
                return "This model sees no white space: line breaks, tabs and repeated spaces change nothing."
    return None


def _list(items: Iterable[str]) -> str:
    listed = list(items)
    shown = ", ".join(listed[:_MOST_NAMED])
    return shown if len(listed) <= _MOST_NAMED else f"{shown} and {len(listed) - _MOST_NAMED} more"


def _quote(source: str) -> str:
    if len(source) <= _LONGEST_QUOTE:
        return source
    return f"{source[:_LONGEST_QUOTE]}… ({len(source)} characters)"


def _code_point(char: str) -> str:
    kind = (
        "control character"
        if unicodedata.category(char) == "Cc"
        else unicodedata.name(char, "unnamed character")
    )
    return f"U+{ord(char):04X} ({kind})"


def _show(text: str) -> str:
    return (
        text
        if text.isprintable() and not unicodedata.combining(text[0])
        else " ".join(map(_code_point, text))
    )
