"""Words of a text: the segments between the word boundaries of UAX #29, the same for every tokenizer."""

from bisect import bisect_right
from itertools import pairwise

import regex

# The code points with the property White_Space; str.isspace also accepts the controls U+001C to U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

Span = tuple[int, int]

_boundary = regex.compile(r"(?V1w)\b")


def word_spans(text: str) -> list[Span]:
    """Segments of `text` by the default word boundaries of UAX #29, as half-open ranges of code points.

    Together the segments cover the text without gaps: white space and punctuation are segments too.
    """
    cuts = {0, len(text)} | {match.start() for match in _boundary.finditer(text)}
    return list(pairwise(sorted(cuts)))


class Words:
    """The words of one text, asked for by span; their indices start at `first`."""

    def __init__(self, text: str, first: int = 0) -> None:
        self._text = text
        self._first = first
        self._spans = word_spans(text)
        self._starts = [start for start, _ in self._spans]

    def __len__(self) -> int:
        return len(self._spans)

    def overlapping(self, span: Span) -> tuple[int, ...]:
        """Indices of the words that `span` overlaps; white space counts only for a span of nothing else."""
        start, end = span
        blank = _is_blank(self._text[start:end])
        found = []
        for index in range(bisect_right(self._starts, start) - 1, len(self._spans)):
            left, right = self._spans[index]
            if left >= end:
                break
            if blank or not _is_blank(self._text[left:right]):
                found.append(self._first + index)
        return tuple(found)


def _is_blank(text: str) -> bool:
    return not text.strip(WHITE_SPACE)
