"""Lines that lie on each other as one, so that none is hidden under another."""

from collections.abc import Sequence
from dataclasses import replace

from model.labs.result import Line
from model.labs.words import listed


def merged(lines: Sequence[Line]) -> list[Line]:
    """The lines, those with the same numbers as one that has all their names."""
    found: dict[tuple[object, ...], list[Line]] = {}
    for line in lines:
        found.setdefault((tuple(line.x), tuple(line.y), line.origin), []).append(line)
    return [replace(alike[0], name=listed([line.name for line in alike])) for alike in found.values()]
