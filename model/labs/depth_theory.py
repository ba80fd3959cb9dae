"""What theory says of deep stacks of random feed-forward layers.

A ReLU layer f keeps a share c of the second moment, so that v becomes v + c under a pre-norm, v (1 + c)
without a norm, and c v without a residual; gradients grow backwards by the same factors (He et al.
2015, 2.2).
"""

import math
from itertools import accumulate

from model.labs.parameters.block import Depth

EXPANSION = 4


def deviation(settings: Depth, name: str) -> float:
    """Standard deviation of a weight matrix (Glorot and Bengio 2010, eq. 12; He et al. 2015, eq. 10)."""
    outputs, inputs = shapes(settings)[name]
    after_relu = name == "ffn.down.weight"
    return math.sqrt(2 / (inputs + outputs) if settings.init == "xavier" else (1 + after_relu) / inputs)


def shapes(settings: Depth) -> dict[str, tuple[int, int]]:
    """Outputs and inputs of each weight matrix of a block."""
    width, hidden = settings.width, EXPANSION * settings.width
    projections = {f"attention.{name}.weight": (width, width) for name in "qkvo"}
    return projections | {"ffn.up.weight": (hidden, width), "ffn.down.weight": (width, hidden)}


def kept_share(settings: Depth) -> float:
    """The share c of the second moment that a layer keeps: fan-in by variance, twice; half for the ReLU."""
    up, down = deviation(settings, "ffn.up.weight"), deviation(settings, "ffn.down.weight")
    return settings.width * up**2 / 2 * EXPANSION * settings.width * down**2


def mean_scale(settings: Depth) -> list[float] | None:
    """Root of the stream's mean second moment by depth, [L + 1], where theory knows it; the input has 1."""
    steps, c = range(settings.depth + 1), kept_share(settings)
    normed = settings.norm != "none"
    if normed and settings.placement == "post":
        return [1.0 for _ in steps]
    if settings.parts == "both":
        return None
    match settings.residual, normed:
        case True, True:
            return [math.sqrt(1 + c * step) for step in steps]
        case True, False:
            return [(1 + c) ** (step / 2) for step in steps]
        case False, True:
            return [1.0 if step == 0 else math.sqrt(c) for step in steps]
        case _:
            return [c ** (step / 2) for step in steps]


def expected_scale(settings: Depth) -> list[float] | None:
    """The median root mean square by depth, [L + 1].

    ln ‖x‖² is nearly normal, and its middle half its variance below the ln of the mean.
    """
    mean = mean_scale(settings)
    if mean is None or is_set(settings):
        return mean
    return [one * math.exp(-variance / 4) for one, variance in zip(mean, scatter(settings), strict=True)]


def expected_gradient(settings: Depth) -> list[float] | None:
    """Median norm of the gradient by depth, 1 at the output: it grows backwards as the stream forwards."""
    mean = mean_scale(settings)
    plain = settings.norm == "none" or (settings.residual and settings.placement == "pre")
    if mean is None or settings.parts == "both" or not plain:
        return None
    variances = scatter(settings)
    return [
        mean[-1] / one * math.exp((variance - variances[-1]) / 4)
        for one, variance in zip(mean, variances, strict=True)
    ]


def is_set(settings: Depth) -> bool:
    """Whether a norm after the sum sets the stream's scale, so that nothing of it is drawn."""
    return settings.placement == "post" and settings.norm != "none"


def of_one_layer(settings: Depth) -> float:
    """Variance of ‖f(x)‖² over its mean for one ReLU layer f, given x, over draws of its weights.

    It is 5/F + 2/D (Hanin and Nica 2020, theorem 1): F numbers of which half are cut off, then a projection
    to D. Several tokens pass through the same weights: their mean scatters as much at most.
    """
    return 5 / (EXPANSION * settings.width) + 2 / settings.width


def scatter(settings: Depth) -> list[float]:
    """Variance of ln ‖x‖² at every depth, [L + 1], over draws of the weights.

    Each layer adds its own variance; a sum x + f(x) adds that for f, and 4/D for the cross term x·f(x), each
    by its share of the sum's square.
    """
    c, width, normed = kept_share(settings), settings.width, settings.norm != "none"
    layer = of_one_layer(settings)
    if not settings.residual:
        return [min(step, 1 if normed else step) * layer for step in range(settings.depth + 1)]
    sums = [1 + c * step if normed else 1.0 for step in range(settings.depth)]
    each = ((4 * c * v / width + c**2 * layer) / (v + c) ** 2 for v in sums)
    return list(accumulate(each, initial=0.0))
