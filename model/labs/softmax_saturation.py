"""A softmax over scores that spread too far gives one key everything (Vaswani et al. 2017, section 3.2.1).

Queries are drawn in full. Given q, its scores with independent keys from N(0, 1) are independent N(0, |q|²)
exactly, so that they are drawn from that instead of from keys × d_k components.
"""

import math

import numpy as np
import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxSaturation
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.softmax_measures import (
    DEAD,
    entropy,
    factor_of,
    jacobian_norm,
    matrix_norms,
    mean_largest,
    mean_norm,
    other_measures,
    settled_from,
)
from model.labs.words import power

WIDTHS = [2**power for power in range(15)]
NAMES = {"none": "1 (unscaled)", "inv_sqrt": "1/√d_k", "inv": "1/d_k", "own": "own factor"}
# Two widths count as the same when their means are this close, as a share.
SAME = 0.1
# Standard errors between two samples, rows of the second one, and what fp64 may differ in.
ERRORS, OTHER_ROWS, ROUNDING = 5.0, 2000, 1e-9
# Entries of matrices that a check holds at once, and the fewest rows that can tell anything.
MOST_ENTRIES, LEAST_ROWS = 4_000_000, 64
OTHERS = {
    "entropy": "mean entropy",
    "largest_weight": "mean of the largest weight",
    "dead": "share of rows without gradient",
}
Measures = dict[str, float]


def run(parameters: SoftmaxSaturation, _bench: Bench) -> Result:
    """Entropy, largest weight, largest score and Jacobian of every rule, by d_k from 1 to 16384."""
    widths = sorted({*WIDTHS, parameters.d_k})
    generator = torch.Generator().manual_seed(parameters.seed)
    # A row's scores at d_k are those of the first d_k components of its query.
    q = torch.randn(parameters.rows, widths[-1], generator=generator)  # [N, K]
    z = torch.randn(parameters.rows, parameters.keys, generator=generator, dtype=torch.float64)  # [N, S]
    scores = {width: _norms(q, width) * z for width in widths}  # [N, S] each
    rules = [rule for rule in NAMES if rule != "own" or parameters.rule == "own"]
    found = {
        rule: [_measures(scores[width], factor_of(rule, width, parameters.factor)) for width in widths]
        for rule in rules
    }
    here = widths.index(parameters.d_k)
    return Result(
        _charts(widths, found, parameters.keys),
        _checks(found[parameters.rule][here], scores[parameters.d_k], parameters),
        _facts(widths, found, here, parameters),
        _notes(parameters.keys),
    )


def _norms(q: Tensor, width: int) -> Tensor:
    norms: Tensor = q[:, :width].double().norm(dim=1, keepdim=True)  # [N, 1]
    return norms


def _measures(scores: Tensor, factor: float) -> Measures:
    """What a softmax makes of scores [N, S] times `factor`, over all rows."""
    scaled = scores * factor  # [N, S]
    weights = scaled.softmax(dim=-1)  # [N, S]
    jacobian = jacobian_norm(weights)  # [N]
    return {
        "entropy": entropy(weights).mean().item(),
        "largest_weight": weights.amax(dim=-1).mean().item(),
        "largest_score": scaled.abs().amax(dim=-1).mean().item(),
        "jacobian": jacobian.median().item(),
        "dead": (jacobian < DEAD).double().mean().item(),
    }


def _charts(widths: list[int], found: dict[str, list[Measures]], keys: int) -> list[Chart]:
    width = Axis("d_k", log=True)
    every = [float(one) for one in widths]

    def chart(name: str, title: str, y: Axis, *theory: Line) -> Chart:
        lines = [Line(NAMES[rule], every, _drawn([one[name] for one in of], y)) for rule, of in found.items()]
        return Chart(name, title, width, y, [*lines, *theory])

    most = Line("most possible: ln(keys)", every, [math.log(keys)] * len(every), "theory")
    largest = [mean_norm(one) * mean_largest(keys) for one in widths]
    return [
        chart("entropy", "Mean entropy of a row", Axis("entropy in nats"), most),
        chart("largest_weight", "Mean of the largest weight of a row", Axis("weight")),
        chart(
            "largest_score", "Mean of the largest |score| of a row", Axis("|score| after the rule", log=True),
            Line("unscaled, expected", every, largest, "theory"),
        ),
        chart("jacobian", "Median size of the Jacobian ∂p/∂s", Axis("size", log=True)),
        chart("dead", f"Rows whose Jacobian has a size below {power(DEAD)}", Axis("share of rows")),
    ]  # fmt: skip


def _drawn(values: list[float], axis: Axis) -> list[float | None]:
    # A log axis has no zero.
    return [None if axis.log and value == 0 else value for value in values]


def _checks(here: Measures, scores: Tensor, parameters: SoftmaxSaturation) -> list[Check]:
    """What is shown of this d_k and rule: against theory, other rows, and Jacobians as whole matrices."""
    factor = factor_of(parameters.rule, parameters.d_k, parameters.factor)
    random = np.random.default_rng(parameters.seed)
    lengths = np.sqrt(random.chisquare(parameters.d_k, size=(OTHER_ROWS, 1)))  # [M, 1]
    others = other_measures(factor * lengths * random.normal(size=(OTHER_ROWS, parameters.keys)))
    expected = mean_norm(parameters.d_k) * mean_largest(parameters.keys) * factor
    # A few rows do not tell how far rows spread; the other ones do.
    error = ERRORS * others["largest_score"].std() / math.sqrt(parameters.rows)
    return [
        Check("mean largest |score|", expected, here["largest_score"], error, about="largest_score"),
        *_of_other_rows(here, others, parameters.rows),
        *_of_matrices(here, scores * factor),
    ]


def _of_other_rows(here: Measures, others: dict[str, np.ndarray], rows: int) -> list[Check]:
    """Means over the rows that are shown, against those of other rows, within the errors of both samples."""
    checks = []
    for name, words in OTHERS.items():
        error = ERRORS * others[name].std() * math.sqrt(1 / OTHER_ROWS + 1 / rows)
        # Rows so rare that the others have none may be among the shown.
        slack = ERRORS / min(OTHER_ROWS, rows) if name == "dead" else ROUNDING
        what = f"{words}, against {OTHER_ROWS:,} other rows"
        checks.append(Check(what, others[name].mean().item(), here[name], error + slack, about=name))
    return checks


def _of_matrices(here: Measures, scaled: Tensor) -> list[Check]:
    """The median of the Jacobian's size, from the matrices themselves, of as many rows as fit."""
    at_once = max(1, MOST_ENTRIES // scaled.shape[1] ** 2)
    some = scaled[: max(LEAST_ROWS, at_once)].softmax(dim=-1)  # [R, S]
    norms = torch.cat([matrix_norms(part) for part in torch.split(some, at_once)])  # [R]
    rows = len(norms)
    if rows == len(scaled):
        median = norms.median().item()
        what = "median size, from the whole matrix of every row"
        return [Check(what, median, here["jacobian"], 1e-9 * median, about="jacobian")]
    below = (norms < here["jacobian"]).double().mean().item()
    what = f"share of {rows} rows whose whole matrix has a size below the median"
    return [Check(what, 0.5, below, ERRORS * math.sqrt(0.25 / rows), about="jacobian")]


def _facts(
    widths: list[int], found: dict[str, list[Measures]], here: int, parameters: SoftmaxSaturation
) -> dict[str, object]:
    unscaled = found["none"]
    return {
        "d_k": parameters.d_k,
        "keys": parameters.keys,
        "rows": parameters.rows,
        "rule": NAMES[parameters.rule],
        "most_entropy": math.log(parameters.keys),
        **found[parameters.rule][here],
        "unscaled": unscaled[here],
        "scaled": found["inv_sqrt"][here],
        "same_from": max(_settled(widths, found["inv_sqrt"], of) for of in ("entropy", "largest_weight")),
        "same_within": SAME,
        "shared": parameters.keys > 1,
        "threshold": DEAD,
        "hundred_from": _first(widths, [one["largest_score"] > 100 for one in unscaled]),
        "some_dead_from": _first(widths, [one["dead"] > 0.01 for one in unscaled]),
        "half_dead_from": _first(widths, [one["dead"] >= 0.5 for one in unscaled]),
        "rules": [_row(NAMES[rule], of[here]) for rule, of in found.items()],
    }


def _settled(widths: list[int], found: list[Measures], of: str) -> int:
    values = [one[of] for one in found]
    # With one key entropy is 0 at every width.
    return settled_from(widths, values, SAME) if values[-1] else widths[0]


def _first(widths: list[int], holds: list[bool]) -> int | None:
    return next((width for width, one in zip(widths, holds, strict=True) if one), None)


def _row(name: str, measures: Measures) -> dict[str, object]:
    return {
        "scores ×": name,
        "entropy (nats)": measures["entropy"],
        "largest weight": measures["largest_weight"],
        "largest |score|": measures["largest_score"],
    }


def _notes(keys: int) -> list[str]:
    drawn = (
        "Given the length of a query, its scores with random keys are exactly normal and are drawn as such: "
        "from the query's components, not from those of every key."
    )
    alone = "With one key the softmax is 1 whatever the score: entropy and Jacobian are 0 for every rule."
    return [drawn, alone] if keys == 1 else [drawn]
