"""How much gradient reaches a query through its row of attention, by d_k and rule: medians of many rows."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxGradient
from model.labs.query_gradient import WIDTHS, by_autograd, by_formula, draw, norms
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.softmax_measures import factor_of, settled_from
from model.labs.softmax_saturation import DEAD, NAMES, SAME
from model.labs.words import power

CHECKED_ROWS = 8


@dataclass(frozen=True)
class Spread:
    """Of the norms of many rows: their median with its standard error, and their quartiles."""

    median: float
    error: float
    low: float
    high: float


def run(parameters: SoftmaxGradient, bench: Bench) -> Result:
    """Norm of the gradient at q over many rows, by d_k and rule; autograd and formula compared at `d_k`."""
    widths = sorted({*WIDTHS, parameters.d_k})
    drawn = draw(parameters)
    rules = [rule for rule in NAMES if rule != "own" or parameters.rule == "own"]
    found: dict[str, list[Spread]] = {rule: [] for rule in rules}
    for number, width in enumerate(widths):
        for rule in rules:
            found[rule].append(spread_of(norms(drawn, width, factor_of(rule, width, parameters.factor))))
        bench.report((number + 1) / len(widths), f"d_k = {width}", None)
    apart = _apart(parameters)
    lines = [_line(NAMES[rule], widths, of) for rule, of in found.items()]
    title = "Norm of ∂L/∂q: median and quartiles"
    chart = Chart("gradient", title, Axis("d_k", log=True), Axis("norm", log=True), lines)
    what = f"autograd against the formula on {CHECKED_ROWS} rows, largest difference"
    check = Check(what, 0.0, apart, 1e-9, about="gradient")
    return Result([chart], [check], _facts(parameters, widths, found, apart), _notes(found))


def spread_of(values: Tensor) -> Spread:
    """Median, quartiles and standard error of the median of [N], N >= 2, by ranks (binomial, one sigma)."""
    low, median, high = values.quantile(values.new_tensor([0.25, 0.5, 0.75])).tolist()
    count, ordered = len(values), values.sort().values  # [N]
    first, last = (int(count / 2 + side * math.sqrt(count) / 2) for side in (-1, 1))
    return Spread(median, (ordered[last] - ordered[first]).item() / 2, low, high)


def _apart(parameters: SoftmaxGradient) -> float:
    """Largest difference of the two ways on a few rows whose keys are drawn in full."""
    generator = torch.Generator().manual_seed(parameters.seed)
    shapes = [(parameters.d_k,), (parameters.keys, parameters.d_k), (parameters.keys,)]
    q, keys, upstream = (
        torch.randn(CHECKED_ROWS, *shape, generator=generator, dtype=torch.float64) for shape in shapes
    )  # [N, K], [N, S, K], [N, S]
    factor = factor_of(parameters.rule, parameters.d_k, parameters.factor)
    ways = (way(q, keys, upstream, factor) for way in (by_autograd, by_formula))  # [N, K] each
    return (next(ways) - next(ways)).abs().max().item()


def _line(name: str, widths: list[int], found: list[Spread]) -> Line:
    """The median where it is at least DEAD, with the part of the quartile band that is."""
    medians = [one.median if one.median >= DEAD else None for one in found]
    low = [max(one.low, DEAD) if one.high >= DEAD else None for one in found]
    high = [one.high if one.high >= DEAD else None for one in found]
    return Line(name, [float(one) for one in widths], medians, low=low, high=high)


def _facts(
    parameters: SoftmaxGradient, widths: list[int], found: dict[str, list[Spread]], apart: float
) -> dict[str, object]:
    here = widths.index(parameters.d_k)
    unscaled, scaled = found["none"], found["inv_sqrt"]
    return {
        "d_k": parameters.d_k,
        "rule": NAMES[parameters.rule],
        "rows": parameters.rows,
        "gradient": vars(found[parameters.rule][here]),
        "unscaled": vars(unscaled[here]),
        "scaled": vars(scaled[here]),
        "inverse": vars(found["inv"][here]),
        "peak": max(zip(widths, unscaled, strict=True), key=lambda pair: pair[1].median)[0],
        "smaller_from": _smaller_from(widths, unscaled, scaled),
        "same_from": settled_from(widths, [one.median for one in scaled], SAME),
        "same_within": SAME,
        "difference": apart,
    }


def _smaller_from(widths: list[int], unscaled: list[Spread], scaled: list[Spread]) -> int | str:
    """From which width on the unscaled median is smaller by more than two standard errors."""
    unclear = [
        width
        for width, one, other in zip(widths, unscaled, scaled, strict=True)
        if other.median - one.median <= 2 * math.hypot(one.error, other.error)
    ]
    clear = [width for width in widths if width > max(unclear, default=0)]
    return clear[0] if clear else f"no d_k up to {widths[-1]}"


def _notes(found: dict[str, list[Spread]]) -> list[str]:
    drawn = (
        "Given q, the norm of its gradient has an exact distribution, and rows are drawn from that; "
        f"autograd is checked on {CHECKED_ROWS} rows with keys drawn in full."
    )
    if all(one.low >= DEAD for of in found.values() for one in of):
        return [drawn]
    return [
        drawn,
        f"The axis ends at {power(DEAD)}: medians below are left out, and bands are cut off there.",
    ]
