"""How much gradient reaches a query through its row of attention, by d_k and rule: medians of many rows."""

import math
from dataclasses import dataclass

from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxGradient
from model.labs.query_gradient import WIDTHS, Draws, draw, drawn_in_full, norms, shown_by_autograd
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.softmax_measures import DEAD, factor_of, settled_from
from model.labs.softmax_saturation import NAMES, SAME
from model.labs.words import power

# Numbers that keys drawn in full may take for one check, and the fewest rows that can tell anything.
MOST_DRAWN, FEWEST_ROWS = 2_000_000, 100
# Standard errors that a share of rows may lie beside one half.
ERRORS = 5.0


@dataclass(frozen=True)
class Spread:
    """Of the norms of many rows: their median with its standard error, and their quartiles."""

    median: float
    error: float
    low: float
    high: float


def run(parameters: SoftmaxGradient, bench: Bench) -> Result:
    """Norm of the gradient at q over many rows, by d_k and rule; by autograd as well at `d_k`."""
    widths = sorted({*WIDTHS, parameters.d_k})
    drawn = draw(parameters)
    rules = [rule for rule in NAMES if rule != "own" or parameters.rule == "own"]
    found: dict[str, list[Spread]] = {rule: [] for rule in rules}
    for number, width in enumerate(widths):
        for rule in rules:
            found[rule].append(spread_of(norms(drawn, width, factor_of(rule, width, parameters.factor))))
        bench.report((number + 1) / len(widths), f"d_k = {width}", None)
    lines = [_line(NAMES[rule], widths, of) for rule, of in found.items()]
    title = "How much gradient reaches a query, |∂L/∂q|: median and quartiles"
    chart = Chart("gradient", title, Axis("d_k", log=True), Axis("length of the gradient", log=True), lines)
    here = {rule: of[widths.index(parameters.d_k)] for rule, of in found.items()}
    checks = [*_medians(drawn, here, parameters), *_in_full(here, parameters)]
    return Result([chart], checks, _facts(parameters, widths, found), _notes(found, parameters))


def spread_of(values: Tensor) -> Spread:
    """Median, quartiles and standard error of the median of [N], N >= 2, by ranks (binomial, one sigma)."""
    low, median, high = values.quantile(values.new_tensor([0.25, 0.5, 0.75])).tolist()
    count, ordered = len(values), values.sort().values  # [N]
    first, last = (int(count / 2 + side * math.sqrt(count) / 2) for side in (-1, 1))
    return Spread(median, (ordered[last] - ordered[first]).item() / 2, low, high)


def _medians(drawn: Draws, here: dict[str, Spread], parameters: SoftmaxGradient) -> list[Check]:
    """Every rule's median at d_k, against autograd on the very rows that are shown."""
    checks = []
    for rule, found in here.items():
        factor = factor_of(rule, parameters.d_k, parameters.factor)
        expected = shown_by_autograd(drawn, parameters.d_k, factor).quantile(0.5).item()
        # Sums of some hundred fp64 terms in another order keep nine digits and more.
        what = f"median at d_k = {parameters.d_k}, {NAMES[rule]}, by autograd"
        checks.append(Check(what, expected, found.median, 1e-9 * expected, about="gradient"))
    return checks


def _full_rows(parameters: SoftmaxGradient) -> int:
    """How many rows can be drawn component by component: 0 where too few to tell anything."""
    rows = min(1000, MOST_DRAWN // (parameters.keys * parameters.d_k))
    return rows if rows >= FEWEST_ROWS else 0


def _in_full(here: dict[str, Spread], parameters: SoftmaxGradient) -> list[Check]:
    """Half of other rows, of q and keys drawn in full, lie below the median that is shown."""
    rows = _full_rows(parameters)
    if not rows:
        return []
    factor = factor_of(parameters.rule, parameters.d_k, parameters.factor)
    full = drawn_in_full(parameters, rows, factor)  # [rows]
    below = (full < here[parameters.rule].median).double().mean().item()
    # Both the share of these rows and the median of the shown ones have the errors of a sample.
    error = ERRORS * math.sqrt(0.25 / rows + 0.25 / parameters.rows)
    what = f"share of {rows} rows with keys drawn in full below the median, {NAMES[parameters.rule]}"
    return [Check(what, 0.5, below, error, about="gradient")]


def _line(name: str, widths: list[int], found: list[Spread]) -> Line:
    """The median where it is at least DEAD, with the part of the quartile band that is."""
    medians = [one.median if one.median >= DEAD else None for one in found]
    low = [max(one.low, DEAD) if one.high >= DEAD else None for one in found]
    high = [one.high if one.high >= DEAD else None for one in found]
    return Line(name, [float(one) for one in widths], medians, low=low, high=high)


def _facts(
    parameters: SoftmaxGradient, widths: list[int], found: dict[str, list[Spread]]
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
    }


def _smaller_from(widths: list[int], unscaled: list[Spread], scaled: list[Spread]) -> int | None:
    """From which width on the unscaled median is smaller by more than two standard errors."""
    unclear = [
        width
        for width, one, other in zip(widths, unscaled, scaled, strict=True)
        if other.median - one.median <= 2 * math.hypot(one.error, other.error)
    ]
    clear = [width for width in widths if width > max(unclear, default=0)]
    return clear[0] if clear else None


def _notes(found: dict[str, list[Spread]], parameters: SoftmaxGradient) -> list[str]:
    drawn = (
        "Given the length of q, the length of its gradient has an exact distribution: rows are drawn from "
        "that, and not component by component."
    )
    notes = [drawn]
    if not _full_rows(parameters):
        notes.append("At this size keys drawn in full would take long: the check against them is left out.")
    if any(one.low < DEAD for of in found.values() for one in of):
        notes.append(
            f"The axis ends at {power(DEAD)}: medians below are left out, and bands are cut off there."
        )
    return notes
