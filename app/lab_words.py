"""What a lab answers, in the words and columns of a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ROWS = 12
ITEMS = 8
CELL = 60
RELATIONS = {"=": "", "<=": "at most ", ">=": "at least "}
# Whole numbers up to here are written out.
WHOLE = 1e15


def in_words(found: Mapping[str, Any]) -> str:
    """Checks, facts, tables, series and notes, line by line."""
    return "\n".join([
        *map(_check, found["checks"]),
        *_facts(found["facts"]),
        *map(_series, found["series"]),
        *found["notes"],
        "--json prints every number.",
    ])  # fmt: skip


def _check(check: Mapping[str, Any]) -> str:
    verdict = "holds" if check["holds"] else "FAILS"
    tolerance = f" ± {_short(check['tolerance'])}" if check["tolerance"] else ""
    measured, wanted = (
        "no number" if check[name] is None else _short(check[name]) for name in ("measured", "expected")
    )
    expected = f"{RELATIONS[check['relation']]}{wanted}{tolerance}"
    return f"{verdict:>6}  {check['name']}: measured {measured}, expected {expected} ({check['origin']})"


def _facts(facts: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Single facts as "a.b: value", lists in one line, lists of facts as tables."""
    for name, value in facts.items():
        match value:
            case dict():
                yield from _facts(value, f"{before}{name}.")
            case [dict(), *_]:
                yield f"{before}{name}:"
                yield from _table(value)
            case list():
                yield f"{before}{name}: {_listed(value)}"
            case _:
                yield f"{before}{name}: {_short(value)}"


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Aligned columns, numbers to the right; of many rows the first, and how many more there are."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = [[_cell(row[name]) if name in row else "" for name in columns] for row in rows[:ROWS]]
    widths = [max(map(len, column)) for column in zip(columns, *shown, strict=True)]
    numbers = [all(isinstance(row.get(name), int | float | None) for row in rows) for name in columns]
    for cells in (columns, *shown):
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numbers, strict=True)
        ]
        yield f"  {'  '.join(padded)}".rstrip()
    if len(rows) > ROWS:
        yield f"  … and {_more(len(rows) - ROWS, 'more row')}"


def _series(series: Mapping[str, Any]) -> str:
    """One line: what is drawn, over which range, and how much of it."""
    if series["kind"] == "matrix":
        size = f"{len(series['rows'])} × {len(series['columns'])}"
        values = _range([value for row in series["values"] for value in row])
        return f"[{series['id']}] {series['title']}: {size}, {series['unit']}{values}"
    lines = series["lines"]
    points = _more(sum(len(line["y"]) for line in lines), "point")
    places = [place for line in lines for place in line["x"]]
    x = "" if any(isinstance(place, str) for place in places) else f"{series['x']['label']}{_range(places)}; "
    y = f"{series['y']['label']}{_range([value for line in lines for value in line['y']])}"
    return f"[{series['id']}] {series['title']}: {_more(len(lines), 'line')}, {points}; {x}{y}"


def _range(values: Sequence[float | None]) -> str:
    finite = [value for value in values if value is not None]
    return f" from {_short(min(finite))} to {_short(max(finite))}" if finite else ""


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(_cell(value) for value in values[:ITEMS])
    more = len(values) - ITEMS
    return f"{shown} … and {more} more" if more > 0 else shown or "none"


def _cell(value: object) -> str:
    text = _listed(value) if isinstance(value, list) else _short(value)
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def _short(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < WHOLE else f"{value:.6g}"
        case None:
            return "none"
        case dict():
            return ", ".join(f"{name} {_short(part)}" for name, part in value.items())
        case _:
            return " ⏎ ".join(str(value).splitlines()) or "(empty)"


def _more(count: int, one: str) -> str:
    return f"{count} {one}" if count == 1 else f"{count} {one}s"
