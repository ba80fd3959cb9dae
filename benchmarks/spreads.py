"""Medians, spreads and straight lines of what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression, median, quantiles


@dataclass(frozen=True)
class Spread:
    """The median of repeated measurements and their quartiles, which say how far to trust it."""

    median: float
    low: float
    high: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of at least one value."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, _, high = quantiles(values, n=4, method="inclusive")
    return Spread(median(values), low, high, len(values))


@dataclass(frozen=True)
class Line:
    """By least squares y = slope · x + intercept; `residual`: the largest distance from it over mean y."""

    slope: float
    intercept: float
    residual: float


def line(x: Sequence[float], y: Sequence[float]) -> Line:
    """The straight line through two points or more; from three on the residual says whether it is one."""
    slope, intercept = linear_regression(x, y)
    off = max(abs(b - (slope * a + intercept)) for a, b in zip(x, y, strict=True))
    return Line(slope, intercept, off / fmean(y))
