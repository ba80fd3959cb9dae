"""ALiBi: a bias on every score that grows with distance (Press et al. 2022, section 3)."""

import math

import torch
from torch import Tensor

from model.bias import Alibi, alibi_slopes
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.alibi import AlibiLab
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result, Series
from model.labs.words import counted, one_of
from model.rules import Causal, ScoreRule
from model.scores import attention

SIDE, POINTS = 128, 512
# Smaller numbers lose digits in fp64.
TINY = 1e-300


def run(parameters: AlibiLab, _bench: Bench) -> Result:
    """Slopes, one head's bias, and the weights that it alone gives. Raises InputError for a head too many."""
    slopes, head = alibi_slopes(parameters.heads), parameters.head
    if head >= parameters.heads:
        raise InputError(
            f"There is no head {head} among {counted(parameters.heads, 'head')}: {one_of(parameters.heads)}."
        )
    weights = _weights(slopes, parameters.length)  # [H, S]
    series: list[Series] = [
        _slopes(slopes),
        _bias(slopes, head, parameters.length),
        _by_distance(slopes, weights, head),
    ]
    facts = _facts(slopes, head, weights[head])
    limits = {"head": parameters.heads - 1}
    notes = _notes(parameters, weights[head])
    return Result(series, _checks(slopes, head, weights[head]), facts, notes, limits)


def published_slopes(heads: int) -> list[float]:
    """2^(-8i/n) for i = 1 … n; where n is no power of two, the rule that the authors' code states."""
    below = 1 << (heads.bit_length() - 1)
    if below == heads:
        return [2.0 ** (-8 * i / heads) for i in range(1, heads + 1)]
    return published_slopes(below) + published_slopes(2 * below)[0::2][: heads - below]


def _weights(slopes: tuple[float, ...], length: int) -> Tensor:
    """What the last of `length` queries attends to in each head where all products q·k are equal: [H, S]."""
    heads, blank = len(slopes), torch.zeros(len(slopes), length, 1, dtype=torch.float64)
    rule = ScoreRule(scales=(1.0,) * heads, masks=(Causal(),) * heads, bias=Alibi(slopes))
    return attention(blank, blank, rule, heads=range(heads), rows=range(length - 1, length))[:, 0]  # [H, S]


def _slopes(slopes: tuple[float, ...]) -> Chart:
    heads = list(range(len(slopes)))
    lines = [
        Line("the models' slopes", heads, slopes),
        Line("by the paper's rule", heads, published_slopes(len(slopes)), "theory"),
    ]
    return Chart(
        "slopes", "Slope of each head", Axis("head"), Axis("slope, per position", log=True), lines, "points"
    )


def _bias(slopes: tuple[float, ...], head: int, length: int) -> Heatmap:
    places = torch.arange(min(length, SIDE))
    bias = Alibi(slopes).at(range(head, head + 1), places, places)[0]  # [T, S]
    bias = bias.masked_fill(places[None] > places[:, None], torch.nan)
    part = f" (the first {SIDE} of {length} tokens)" if length > SIDE else ""
    return Heatmap(
        "bias",
        f"What head {head} adds to its scores{part}",
        Axis("key"),
        Axis("query"),
        places,
        places,
        bias,
        "bias",
    )


def _by_distance(slopes: tuple[float, ...], weights: Tensor, head: int) -> Chart:
    shown = weights.flip(1)[:, :POINTS]  # [H, distance]
    distances = torch.arange(shown.shape[1])
    lines = [
        Line(f"head {other}", distances, shown[other]) for other in dict.fromkeys((head, 0, len(slopes) - 1))
    ]
    lines.append(
        Line(
            f"head {head} by e^(−slope · distance)",
            distances,
            _geometric(slopes[head], weights.shape[1])[:POINTS],
            "theory",
        )
    )
    title = "Where the last query looks when all products q·k are equal"
    return Chart("weights", title, Axis("distance, in positions"), Axis("weight", log=True), lines)


def _geometric(slope: float, length: int) -> list[float]:
    """Weights of a softmax over -slope · distance, by the sum of a geometric series."""
    ratio = math.exp(-slope)
    whole = (1 - ratio**length) / (1 - ratio)
    return [ratio**distance / whole for distance in range(length)]


def _checks(slopes: tuple[float, ...], head: int, weights: Tensor) -> list[Check]:
    published = published_slopes(len(slopes))
    off = max(abs(ours - theirs) for ours, theirs in zip(slopes, published, strict=True))
    expected = torch.tensor(_geometric(slopes[head], len(weights)), dtype=torch.float64)
    # Relative, since far weights are tiny: an exponent of up to 745 is rounded by 2^-53 of itself.
    told = expected > TINY
    difference = (weights.flip(0)[told] / expected[told] - 1).abs().max().item()
    return [
        Check("slope of the first head", published[0], slopes[0], about="slopes"),
        Check(f"slope of head {head}", published[head], slopes[head], about="slopes"),
        Check("all slopes and the paper's rule, largest difference", 0.0, off, about="slopes"),
        Check(f"weights of head {head} by e^(−slope · distance) / Σ, less 1, largest", 0.0, difference, 1e-11,
              about="weights"),
    ]  # fmt: skip


def _facts(slopes: tuple[float, ...], head: int, weights: Tensor) -> dict[str, object]:
    return {
        "heads": len(slopes), "head": head, "slope": slopes[head], "number": head + 1,
        "power_of_two": len(slopes).bit_count() == 1, "other": len(slopes).bit_count() != 1,
        "below": 1 << (len(slopes).bit_length() - 1), "above": 2 << (len(slopes).bit_length() - 1),
        "steepest": max(slopes), "flattest": min(slopes),
        "half_distance": math.log(2) / slopes[head], "own_weight": weights[-1], "farthest_weight": weights[0],
        "length": len(weights),
        "table": [
            {"head": index, "slope": slope, "weight halves every … positions": math.log(2) / slope}
            for index, slope in enumerate(slopes)
        ],
    }  # fmt: skip


def _notes(parameters: AlibiLab, weights: Tensor) -> list[str]:
    notes = []
    zeros = int((weights == 0).sum())
    if zeros:
        notes.append(
            f"From distance {len(weights) - zeros} on the weights of head {parameters.head} are smaller than "
            "any number of 64 bits but 0, so a computer finds 0; a logarithmic axis has no place for it."
        )
    if parameters.length > POINTS:
        notes.append(f"The curve shows distances up to {POINTS - 1}; the check uses all of them.")
    return notes
