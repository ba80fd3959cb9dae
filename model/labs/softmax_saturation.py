"""A softmax over scores that spread too far gives one key everything (Vaswani et al. 2017, section 3.2.1).

Queries are drawn in full. Given q, its scores with independent keys from N(0, 1) are independent N(0, |q|²)
exactly, so that they are drawn from that instead of from keys × d_k components.
"""

import math

import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxSaturation
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.softmax_measures import (
    entropy,
    factor_of,
    jacobian_norm,
    mean_largest,
    mean_norm,
    settled_from,
)
from model.labs.words import power

WIDTHS = [2**power for power in range(15)]
NAMES = {"none": "1 (unscaled)", "inv_sqrt": "1/√d_k", "inv": "1/d_k", "own": "own factor"}
# Below this a gradient is as good as none, as textbooks put it.
DEAD = 1e-6
# Two widths count as the same when their means are this close, as a share.
SAME = 0.1
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
        _checks(scores[parameters.d_k], parameters),
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
        chart("entropy", "Mean entropy of a row", Axis("nats"), most),
        chart("largest_weight", "Mean of the largest weight of a row", Axis("weight")),
        chart(
            "largest_score", "Mean of the largest |score| of a row", Axis("|score| after the rule", log=True),
            Line("unscaled, expected", every, largest, "theory"),
        ),
        chart("jacobian", "Median norm of ∂softmax/∂scores", Axis("Frobenius norm", log=True)),
        chart("dead", f"Rows whose ∂softmax/∂scores is below {power(DEAD)}", Axis("share of rows")),
    ]  # fmt: skip


def _drawn(values: list[float], axis: Axis) -> list[float | None]:
    # A log axis has no zero.
    return [None if axis.log and value == 0 else value for value in values]


def _checks(scores: Tensor, parameters: SoftmaxSaturation) -> list[Check]:
    """Of this d_k: theory's largest score, and the Jacobian's norm against the matrix itself."""
    factor = factor_of(parameters.rule, parameters.d_k, parameters.factor)
    largest = (scores * factor).abs().amax(dim=-1)  # [N]
    expected = mean_norm(parameters.d_k) * mean_largest(parameters.keys) * factor
    error = largest.std().item() / math.sqrt(len(largest))
    weights = (scores * factor).softmax(dim=-1)  # [N, S]
    some = weights[:50]  # [50, S]
    matrix = torch.diag_embed(some) - some[:, :, None] * some[:, None, :]  # [50, S, S]
    apart = (torch.linalg.matrix_norm(matrix) - jacobian_norm(some)).abs().max().item()
    most = math.log(parameters.keys)
    return [
        Check("mean largest |score|", expected, largest.mean().item(), 5 * error, about="largest_score"),
        Check("norm of the Jacobian, against the matrix of 50 rows", 0.0, apart, 1e-12, about="jacobian"),
        Check("mean entropy", most, entropy(weights).mean().item(), 1e-9, "<=", about="entropy"),
    ]


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


def _first(widths: list[int], holds: list[bool]) -> int | str:
    found = (width for width, one in zip(widths, holds, strict=True) if one)
    return next(found, f"no d_k up to {widths[-1]}")


def _row(name: str, measures: Measures) -> dict[str, object]:
    return {
        "scores ×": name,
        "entropy (nats)": measures["entropy"],
        "largest weight": measures["largest_weight"],
        "largest |score|": measures["largest_score"],
        "Jacobian, median": measures["jacobian"],
        f"rows below {power(DEAD)}": measures["dead"],
    }


def _notes(keys: int) -> list[str]:
    drawn = (
        "Queries are drawn component by component. Given q, scores with independent keys are exactly "
        "N(0, |q|²), and they are drawn from that."
    )
    alone = "With one key the softmax is 1 whatever the score: entropy and Jacobian are 0 for every rule."
    return [drawn, alone] if keys == 1 else [drawn]
