"""Random blocks, one on the other: how far activations and gradients get through.

After He et al. 2016 and Xiong et al. 2020. The stack is made of the same `Block` as every model here, with
ReLU and without biases.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from model.attention import SiteRun
from model.config import AttentionConfig, FeedForwardConfig, LayerNorm, NoPosition, Norm, RMSNorm, StackConfig
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.depth_again import Again, again, again_checks
from model.labs.depth_layers import ALLOWED, Layers, layer_checks, layers_of
from model.labs.depth_theory import (
    EXPANSION,
    deviation,
    expected_gradient,
    expected_scale,
    is_set,
    scatter,
    shapes,
)
from model.labs.parameters.block import Depth
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.vectors import sameness
from model.rules import Bidirectional, ScoreRule
from model.stack import Block, BlockRun

TOKENS, HEAD_WIDTH, EPS = 16, 8, 1e-5
NORMS: dict[str, Norm] = {"layer": LayerNorm(EPS), "rms": RMSNorm(EPS)}
NORM_NAMES = {"none": "no norm", "layer": "LayerNorm", "rms": "RMSNorm"}
# Blocks times squared width that one request may draw, a few seconds on two cores.
MOST = 128 * 128**2
# What a post-norm sets is 1 but for its ε, against a mean square of 0.3 and more.
SET = 1e-4


@dataclass(frozen=True)
class Variant:
    """One line: what it is called, and the stack it stands for."""

    name: str
    settings: Depth


@dataclass(frozen=True)
class Signal:
    """What one stack did, at the input of every block and after the last: [L + 1] numbers each.

    `scale` is the root mean square of the stream, `gradient` the norm of d output / d stream against that at
    the output, `sameness` the mean cosine between tokens; `layers` is what each layer did on average,
    `again` how far all this is from other ways of computing it.
    """

    scale: list[float]
    gradient: list[float]
    sameness: list[float]
    layers: Layers
    again: Again

    @property
    def finite(self) -> bool:
        """Whether nothing left the range of its numbers."""
        return all(map(math.isfinite, (*self.scale, *self.gradient, *self.sameness)))


Signals = dict[str, list[Signal]]


def run(parameters: Depth, bench: Bench) -> Result:
    """Every variant on the same random weights, `repeats` times. Raises InputError where that is too much."""
    if parameters.depth * parameters.width**2 * parameters.repeats > MOST:
        raise InputError(
            f"{parameters.repeats} stacks of {parameters.depth} blocks of width {parameters.width} would "
            "take too long: lower one of the three."
        )
    variants = _variants(parameters)
    signals: Signals = {variant.name: [] for variant in variants}
    total = parameters.repeats * len(variants)
    for repeat in range(parameters.repeats):
        weights = list(_weights(parameters, repeat))
        for number, variant in enumerate(variants):
            done = repeat * len(variants) + number
            bench.report(done / total, variant.name, _result(variants, signals) if done else None)
            signals[variant.name].append(_signal(variant.settings, weights))
    return _result(variants, signals)


def _result(variants: Sequence[Variant], signals: Signals) -> Result:
    """What a page can show of the variants that ran at least once."""
    ran = [variant for variant in variants if signals[variant.name]]
    checks = [check for variant in ran for check in _checks(variant, signals[variant.name])]
    return Result(_charts(ran, signals), checks, _facts(ran, signals), _notes(signals))


def _variants(chosen: Depth) -> list[Variant]:
    def changed(name: str, **changes: object) -> Variant:
        return Variant(name, chosen.model_copy(update=changes))

    match chosen.compare:
        case "residuals":
            lines = [changed("with residuals", residual=True), changed("without residuals", residual=False)]
            bare = changed("without residuals or norms", residual=False, norm="none")
            return lines if chosen.norm == "none" else [*lines, bare]
        case "norms":
            return [changed(name, norm=norm) for norm, name in NORM_NAMES.items()]
        case "placement":
            return [changed(f"{place}-norm", placement=place) for place in ("pre", "post")]


def _weights(parameters: Depth, repeat: int) -> Iterator[dict[str, Tensor]]:
    """First where signal and gradient start, "input" and "output" [T, D]; then each block's weights."""
    generator = torch.Generator().manual_seed((parameters.seed + repeat) % 2**32)

    def drawn(shape: tuple[int, int], spread: float) -> Tensor:
        return spread * torch.randn(shape, generator=generator, dtype=torch.float64)

    yield {name: drawn((TOKENS, parameters.width), 1.0) for name in ("input", "output")}
    for _ in range(parameters.depth):
        yield {name: drawn(shape, deviation(parameters, name)) for name, shape in shapes(parameters).items()}


@torch.enable_grad()
def _signal(settings: Depth, weights: list[dict[str, Tensor]]) -> Signal:
    ends, *layers = weights
    step, one = _step(settings), torch.ones(settings.width, dtype=torch.float64)
    with torch.device("meta"):
        block = Block(_config(settings))
    norms = {name: one if name.endswith("gain") else 0 * one for name in block.state_dict() if "norm" in name}
    streams = [ends["input"][None].clone().requires_grad_()]  # [1, T, D]
    for layer in layers:
        streams.append(functional_call(block, layer | norms, (streams[-1], step)))
    gradients = torch.autograd.grad(streams[-1], streams, ends["output"][None])
    start = ends["output"].norm()
    scale = [x.detach().square().mean().sqrt().item() for x in streams]
    reached = [(gradient.norm() / start).item() for gradient in gradients]
    alike = [sameness(x[0].detach()) for x in streams]
    found = again(
        settings, layers, [x[0].detach() for x in streams], [g[0] for g in gradients], (scale, reached, alike)
    )
    return Signal(scale, reached, alike, layers_of(settings, streams, gradients), found)


def _config(settings: Depth) -> StackConfig:
    width, heads = settings.width, settings.width // HEAD_WIDTH
    return StackConfig(
        "encoder",
        layers=settings.depth,
        width=width,
        attention=AttentionConfig(heads, heads, HEAD_WIDTH, HEAD_WIDTH**-0.5, qkv_bias=False, out_bias=False),
        feed_forward=FeedForwardConfig(EXPANSION * width, "relu", gated=False, bias=False),
        norm=NORMS.get(settings.norm, NORMS["layer"]),
        norm_placement=settings.placement,
        final_norm=False,
        position=NoPosition(TOKENS),
        mask=Bidirectional(),
    )


def _step(settings: Depth) -> BlockRun:
    left_out = set() if settings.parts == "both" else {"attention sublayer"}
    if not settings.residual:
        left_out |= {"attention residual", "ffn residual"}
    if settings.norm == "none":
        left_out |= {"attention norm", "ffn norm"}
    heads = settings.width // HEAD_WIDTH
    rule = ScoreRule((HEAD_WIDTH**-0.5,) * heads, (Bidirectional(),) * heads)
    return BlockRun(SiteRun("encoder.self.0", rule), None, None, frozenset(left_out), None)


def _charts(variants: Sequence[Variant], signals: Signals) -> list[Chart]:
    gradients, scales, alike = [], [], []
    for variant in variants:
        runs, settings = signals[variant.name], variant.settings
        gradients += _lines(variant.name, [one.gradient for one in runs], expected_gradient(settings))
        scales += _lines(variant.name, [one.scale for one in runs], expected_scale(settings))
        alike += _lines(variant.name, [one.sameness for one in runs], None)
    layers = Axis("layer; the last point is the output")
    reach = "How much gradient reaches each layer"
    same = "How alike the tokens' vectors are; 1: no longer told apart"
    cosine = Axis("cosine between tokens")
    return [
        Chart(
            "gradient", reach, layers, Axis("‖gradient‖, 1 at the output", log=True), _theory_last(gradients)
        ),
        Chart(
            "activation",
            "Scale of the stream by depth",
            layers,
            Axis("root mean square", log=True),
            _theory_last(scales),
        ),
        Chart("sameness", same, layers, cosine, alike),
    ]


def _theory_last(lines: list[Line]) -> list[Line]:
    """What was measured first, so that a variant has the same colour in every picture."""
    return sorted(lines, key=lambda line: line.origin == "theory")


def _lines(name: str, runs: list[list[float]], expected: list[float] | None) -> list[Line]:
    by_place = list(zip(*runs, strict=True))
    places, middle = list(range(len(by_place))), [median(values) for values in by_place]
    line = Line(name, places, middle)
    if len(runs) > 1:
        low, high = [min(values) for values in by_place], [max(values) for values in by_place]
        line = Line(name, places, middle, low=low, high=high)
    return [line] if expected is None else [line, Line(name, places, expected, "theory")]


def _checks(variant: Variant, runs: list[Signal]) -> list[Check]:
    """What is drawn by other ways of computing it; the ends of the stack, and its layers, against theory."""
    settings, name = variant.settings, variant.name
    checks = again_checks(name, [one.again for one in runs])
    scale, gradient = expected_scale(settings), expected_gradient(settings)
    if scale is not None:
        ends = [one.scale[-1] for one in runs]
        what = f"{name}: log₁₀ of the rms at the output"
        variance = 0.0 if is_set(settings) else scatter(settings)[-1]
        checks.append(_decades(what, scale[-1], ends, variance, "activation"))
    if gradient is not None:
        starts = [one.gradient[0] for one in runs]
        what = f"{name}: log₁₀ of the gradient at the input"
        checks.append(_decades(what, gradient[0], starts, scatter(settings)[-1], "gradient"))
    return [*checks, *layer_checks(name, settings, [one.layers for one in runs])]


def _decades(name: str, expected: float, measured: list[float], variance: float, about: str) -> Check:
    """Ln ‖x‖ has a quarter of the variance of ln ‖x‖²; the median of R stacks at most π / 2R of one's."""
    error = math.sqrt(variance * min(1.0, math.pi / 2 / len(measured))) / 2
    tolerance = (ALLOWED * error + SET) / math.log(10)
    return Check(name, _log10(expected), _log10(median(measured)), tolerance, about=about)


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else -math.inf if value == 0 else math.nan


def _facts(variants: Sequence[Variant], signals: Signals) -> dict[str, object]:
    rows: list[dict[str, Any]] = [
        {
            "stack": variant.name,
            "gradient at the input": median(one.gradient[0] for one in signals[variant.name]),
            "rms at the output": median(one.scale[-1] for one in signals[variant.name]),
            "likeness of tokens": median(one.sameness[-1] for one in signals[variant.name]),
        }
        for variant in variants
    ]
    named = {
        row["stack"].replace(" ", "_"): {
            "gradient": row["gradient at the input"],
            "likeness": row["likeness of tokens"],
        }
        for row in rows
    }
    pair = [named.get(f"{wired}_residuals") for wired in ("with", "without")]
    told = all(one is not None and all(map(math.isfinite, one.values())) for one in pair)
    bare = told and "without_residuals_or_norms" in named
    return {"ends": rows, "blocks": variants[0].settings.depth, "told": told, "bare": bare, **named}


def _notes(signals: Signals) -> list[str]:
    if all(one.finite for runs in signals.values() for one in runs):
        return []
    return [
        "Where a line ends or a number is missing, activations or gradients grew out of the range of numbers."
    ]
