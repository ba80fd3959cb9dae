"""Numbers and tables as Markdown that can also be read in a terminal."""

from collections.abc import Sequence

from benchmarks.spreads import Spread


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with padded columns, words to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    right = [all(_is_number(row[i]) for row in rows) for i in range(len(header))]
    rule = [
        "-" * (width - 1) + ":" if aligned else "-" * width
        for width, aligned in zip(widths, right, strict=True)
    ]
    lines = [_row(header, widths, right), "| " + " | ".join(rule) + " |"]
    return "\n".join([*lines, *(_row(row, widths, right) for row in rows)])


def time(milliseconds: float) -> str:
    """Three digits, in ms below ten seconds."""
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 10_000 else f"{_digits(milliseconds)} ms"


def size(count: float) -> str:
    """Bytes in decimal units."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= one:
            return f"{_digits(count / one)} {unit}"
    return f"{count:.0f} B"


def with_quartiles(values: Spread, digits: int = 2) -> str:
    """The median and, in brackets, the quartiles."""
    return f"{values.median:.{digits}f} ({values.low:.{digits}f}–{values.high:.{digits}f})"


def _digits(value: float) -> str:
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{decimals}f}"


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell in ("–", "")


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if aligned else cell.ljust(width)
        for cell, width, aligned in zip(cells, widths, right, strict=True)
    ]
    return "| " + " | ".join(padded) + " |"
