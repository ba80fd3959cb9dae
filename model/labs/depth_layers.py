"""One layer of a deep random stack at a time: what it writes and sends back, against theory.

The end of a stack is a product of all its layers, and scatters as all of them together. One layer does not:
given what it reads, what it writes has an exact mean, and layers draw their weights apart from each other. So
the mean over L layers of R stacks has 1 / (L R) of one layer's variance: it tells small faults in the wiring.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.labs.depth_theory import expected_gradient, kept_share, of_one_layer
from model.labs.parameters.block import Depth
from model.labs.result import Check

# Standard errors that a check allows: passed by chance once in a million checks of a normal number.
ALLOWED = 5


@dataclass(frozen=True)
class Layers:
    """What the layers of one stack did on average; None where theory knows nothing of it.

    `written` is the mean square of f(norm(x)), in units of the mean square that f reads. `sent_back` is that
    of the gradient that came back through f and its norm. `kept` is the cosine between the stream before a
    layer and after its post-norm, and `mean` the farthest mean of a token's vector at the output.
    """

    written: float | None = None
    sent_back: float | None = None
    kept: float | None = None
    mean: float = 0.0


def layers_of(settings: Depth, streams: Sequence[Tensor], gradients: Sequence[Tensor]) -> Layers:
    """Measures every layer of a stack, from [L + 1] streams and gradients [1, T, D] at its inputs and end."""
    mean = streams[-1].mean(dim=-1).abs().max().item()
    if settings.parts == "both":
        return Layers(mean=mean)
    before, after = (torch.cat(list(x)).detach() for x in (streams[:-1], streams[1:]))  # [L, T, D] each
    if _post(settings):
        return Layers(kept=torch.cosine_similarity(before, after, dim=-1).mean().item(), mean=mean)
    normed, through = settings.norm != "none", float(settings.residual)
    read = torch.ones_like(before) if normed else before
    written = _share(after - through * before, read)
    sent_back = None
    if expected_gradient(settings) is not None:
        coming, going = torch.cat(list(gradients[1:])), torch.cat(list(gradients[:-1]))  # [L, T, D] each
        scale = before.square().mean(dim=-1, keepdim=True).sqrt() if normed else 1.0  # [L, T, 1]
        sent_back = _share(going - through * coming, coming / scale)
    return Layers(written, sent_back, mean=mean)


def layer_checks(name: str, settings: Depth, runs: Sequence[Layers]) -> list[Check]:
    """What each layer does on average against theory; nothing where theory knows nothing."""
    share, width, count = kept_share(settings), settings.width, settings.depth * len(runs)
    error = math.sqrt(of_one_layer(settings) / count)
    checks = []
    if (written := _mean([run.written for run in runs])) is not None:
        what = f"{name}: mean square that a layer writes, of what it reads"
        checks.append(Check(what, share, written, ALLOWED * error * share, about="activation"))
    if (sent_back := _mean([run.sent_back for run in runs])) is not None:
        # A norm's derivative is blind to the direction of its input, LayerNorm's to the mean as well.
        blind = {"none": 0, "rms": 1, "layer": 2}[settings.norm]
        what = f"{name}: share of a gradient's square that a layer sends back"
        what += "" if settings.norm == "none" else ", for a stream of rms 1"
        # Layers above have read what this one wrote: weights and gradients are independent but for some 1/D.
        slack = (ALLOWED * error + 2 / width) * share
        checks.append(Check(what, share * (1 - blind / width), sent_back, slack, about="gradient"))
    if (kept := _mean([run.kept for run in runs])) is not None:
        checks.append(
            _kept(f"{name}: cosine of the stream before a layer and after it", settings, kept, count)
        )
    if _post(settings) and settings.norm == "layer":
        farthest = max(run.mean for run in runs)
        checks.append(
            Check(f"{name}: mean of a token's vector at the output", 0.0, farthest, 1e-12, about="activation")
        )
    return checks


def _kept(what: str, settings: Depth, measured: float, count: int) -> Check:
    """cos(x, x + f) = (1 + r √c) / s with s² = 1 + 2 r √c + c q, for r of variance 1/D and q of a layer's.

    To first order its variance is c³ / s⁶ of r's and c² / 4 s⁶ of q's, to second its mean is off by some 1/D.
    """
    c, width = kept_share(settings), settings.width
    total = 1 + c
    variance = (
        (c**3 / width + c**2 * of_one_layer(settings) / 4) / total**3 if settings.residual else 1 / width
    )
    expected = total**-0.5 if settings.residual else 0.0
    tolerance = ALLOWED * math.sqrt(variance / count) + 1 / width
    return Check(what, expected, measured, tolerance, about="activation")


def _post(settings: Depth) -> bool:
    return settings.placement == "post" and settings.norm != "none"


def _share(found: Tensor, of: Tensor) -> float:
    """Mean over layers of the square of `found` [L, T, D] over that of `of`."""
    return (found.square().sum(dim=(1, 2)) / of.square().sum(dim=(1, 2))).mean().item()


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
