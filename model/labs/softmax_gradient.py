"""The gradient that reaches a query through softmax: factor · Kᵀ (diag(p) - p pᵀ) g, of a gradient g at p."""

import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.scaling import SoftmaxGradient
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.softmax_measures import factor_of
from model.labs.softmax_saturation import NAMES

WIDTHS = [2**power for power in range(15)]


def run(parameters: SoftmaxGradient, bench: Bench) -> Result:
    """Median norm of the gradient at q by d_k and rule, by autograd; the formula checked at `d_k`."""
    widths = sorted({*WIDTHS, parameters.d_k})
    generator = torch.Generator().manual_seed(parameters.seed)
    q = torch.randn(parameters.rows, widths[-1], generator=generator)  # [N, K]
    keys = torch.randn(parameters.rows, parameters.keys, widths[-1], generator=generator)  # [N, S, K]
    upstream = torch.randn(parameters.rows, parameters.keys, generator=generator)  # [N, S]
    rules = [rule for rule in NAMES if rule != "own" or parameters.rule == "own"]
    norms: dict[str, list[float]] = {rule: [] for rule in rules}
    for number, width in enumerate(widths):
        for rule in rules:
            factor = factor_of(rule, width, parameters.factor)
            reached = by_autograd(q[:, :width], keys[:, :, :width], upstream, factor)  # [N, K]
            norms[rule].append(reached.norm(dim=-1).median().item())
        bench.report((number + 1) / len(widths), f"d_k = {width}", None)
    factor = factor_of(parameters.rule, parameters.d_k, parameters.factor)
    # A few rows: in fp64 all of them would take a gigabyte.
    at = q[:8, : parameters.d_k].double(), keys[:8, :, : parameters.d_k].double(), upstream[:8].double()
    apart = (by_autograd(*at, factor) - by_formula(*at, factor)).abs().max().item()
    lines = [Line(NAMES[rule], [float(one) for one in widths], _drawn(of)) for rule, of in norms.items()]
    chart = Chart("gradient", "Median norm of ∂L/∂q", Axis("d_k", log=True), Axis("norm", log=True), lines)
    check = Check("autograd against the formula, largest difference", 0.0, apart, 1e-9, about="gradient")
    return Result([chart], [check], _facts(parameters, widths, norms, apart), _notes(norms))


def by_autograd(q: Tensor, keys: Tensor, upstream: Tensor, factor: float) -> Tensor:
    """∂L/∂q [N, K] of L = upstream · softmax(factor · keys q): q [N, K], keys [N, S, K], upstream [N, S]."""
    asked = q.detach().clone().requires_grad_()  # [N, K]
    with torch.enable_grad():
        weights = (factor * (keys @ asked[:, :, None])[:, :, 0]).softmax(dim=-1)  # [N, S]
        (reached,) = torch.autograd.grad((weights * upstream).sum(), asked)  # [N, K]
    return reached


def by_formula(q: Tensor, keys: Tensor, upstream: Tensor, factor: float) -> Tensor:
    """The same written out: factor · Kᵀ (p ⊙ g - p (p·g))."""
    weights = (factor * (keys @ q[:, :, None])[:, :, 0]).softmax(dim=-1)  # [N, S]
    inner = weights * (upstream - (weights * upstream).sum(dim=-1, keepdim=True))  # [N, S]
    return factor * (keys.mT @ inner[:, :, None])[:, :, 0]  # [N, K]


def _drawn(values: list[float]) -> list[float | None]:
    return [value or None for value in values]


def _facts(
    parameters: SoftmaxGradient, widths: list[int], norms: dict[str, list[float]], apart: float
) -> dict[str, object]:
    here = widths.index(parameters.d_k)
    pairs = list(zip(widths, norms["none"], norms["inv_sqrt"], strict=True))
    # From the last width on at which the unscaled gradient is not smaller.
    larger = [width for width, unscaled, scaled in pairs if unscaled >= scaled]
    smaller = [width for width in widths if width > max(larger, default=0)]
    return {
        "d_k": parameters.d_k,
        "rule": NAMES[parameters.rule],
        "gradient": norms[parameters.rule][here],
        "unscaled": norms["none"][here],
        "scaled": norms["inv_sqrt"][here],
        "inverse": norms["inv"][here],
        "peak": max(pairs, key=lambda pair: pair[1])[0],
        "smaller_from": smaller[0] if smaller else f"no d_k up to {widths[-1]}",
        "difference": apart,
    }


def _notes(norms: dict[str, list[float]]) -> list[str]:
    if all(value > 0 for of in norms.values() for value in of):
        return []
    return [
        "Where a median is 0 to the last digit that fp32 holds, the line has a gap: a log axis has no zero."
    ]
