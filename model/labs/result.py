"""What a lab answers: series to draw, and checks that hold a measurement against what was expected."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from torch import Tensor

Origin = Literal["measured", "theory", "published", "estimate"]
Relation = Literal["=", "<=", ">="]
Numbers = Sequence[float | None] | Tensor
Ticks = Sequence[float] | Sequence[str] | Tensor


@dataclass(frozen=True)
class Axis:
    """One axis: its label with the unit, whether its steps multiply, and whether it begins at zero."""

    label: str
    log: bool = False
    zero: bool = False

    def as_json(self) -> dict[str, object]:
        """The axis as the API answers it."""
        return {"label": self.label, "log": self.log, **({"zero": True} if self.zero else {})}


@dataclass(frozen=True)
class Line:
    """y against x, and where its numbers come from; `low` and `high` bound a band around it."""

    name: str
    x: Ticks
    y: Numbers
    origin: Origin = "measured"
    low: Numbers | None = None
    high: Numbers | None = None

    def as_json(self) -> dict[str, object]:
        """The line as the API answers it."""
        band = None if self.low is None or self.high is None else [_list(self.low), _list(self.high)]
        return {
            "name": self.name,
            "origin": self.origin,
            "x": _list(self.x),
            "y": _list(self.y),
            "band": band,
        }


@dataclass(frozen=True)
class Chart:
    """Lines, bars, points or steps over common axes."""

    id: str
    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    kind: Literal["lines", "bars", "points"] = "lines"

    def as_json(self) -> dict[str, object]:
        """The chart as the API answers it."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "x": self.x.as_json(),
            "y": self.y.as_json(),
            "lines": [line.as_json() for line in self.lines],
        }


@dataclass(frozen=True)
class Heatmap:
    """A matrix [rows, columns] of numbers in `unit`; `diverging` puts zero in the middle of the colours."""

    id: str
    title: str
    x: Axis
    y: Axis
    columns: Ticks
    rows: Ticks
    values: Tensor
    unit: str
    diverging: bool = False

    def as_json(self) -> dict[str, object]:
        """The matrix as the API answers it."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": "matrix",
            "x": self.x.as_json(),
            "y": self.y.as_json(),
            "columns": _list(self.columns),
            "rows": _list(self.rows),
            "values": [_list(row) for row in self.values],
            "unit": self.unit,
            "diverging": self.diverging,
        }


Series = Chart | Heatmap


@dataclass(frozen=True)
class Check:
    """One number that was measured, beside what was expected of it.

    `origin` says who expects it, `about` names the series beside which a page shows it; None: always.
    """

    name: str
    expected: float
    measured: float
    tolerance: float = 0.0
    relation: Relation = "="
    origin: Origin = "theory"
    about: str | None = None

    @property
    def holds(self) -> bool:
        """Whether the measurement is where it was expected, within the tolerance. False for NaN."""
        match self.relation:
            case "=":
                return self.measured == self.expected or abs(self.measured - self.expected) <= self.tolerance
            case "<=":
                return self.measured <= self.expected + self.tolerance
            case ">=":
                return self.measured >= self.expected - self.tolerance

    def as_json(self) -> dict[str, object]:
        """The check as the API answers it."""
        return {
            "name": self.name,
            "relation": self.relation,
            "expected": _number(self.expected),
            "measured": _number(self.measured),
            "tolerance": _number(self.tolerance),
            "origin": self.origin,
            "about": self.about,
            "holds": bool(self.holds),
        }


@dataclass(frozen=True)
class Result:
    """What a lab found. `facts` are numbers and words that a page sets in its sentences or tables.

    `notes` say what a reader must know: what was left out, what the numbers cannot show. `limits` are the
    largest values that parameters such as a layer may have beside the others.
    """

    series: Sequence[Series] = ()
    checks: Sequence[Check] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    limits: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The result as the API answers it."""
        return {
            "series": [one.as_json() for one in self.series],
            "checks": [check.as_json() for check in self.checks],
            "facts": _plain(self.facts),
            "notes": list(self.notes),
            "limits": dict(self.limits),
        }


def _plain(value: object) -> object:
    """Facts as JSON: nothing that is not finite."""
    match value:
        case Tensor():
            return _plain(value.tolist())
        case float():
            return _number(value)
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case np.generic():
            return _plain(value.item())
        case _:
            return value


def _list(values: Numbers | Ticks) -> list[float | str | None]:
    # What is drawn needs no more digits than float32 holds.
    numbers = values.tolist() if isinstance(values, Tensor) else list(values)
    return [_drawn(value) if isinstance(value, float) else value for value in numbers]


def _drawn(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
