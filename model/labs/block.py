"""A walk through one block of a real model: x + Attention(norm x), then x + FFN(norm x), or norms after."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import LayerNorm
from model.labs.bench import Bench
from model.labs.parameters.block import Walk
from model.labs.reading import Ran, limits_of, run_text
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result, Series
from model.labs.vectors import apart, block_of, numbered, rounding, stack_name
from model.labs.words import counted
from model.recorder import Recordable
from model.stack import Block

RECORD: tuple[Recordable, ...] = ("resid", "mid", "attn_out", "ffn_out", "ffn_act")
COLUMNS = 128
BINS = 61
# Where colours end, in standard deviations: the few numbers beyond would leave no contrast to the others.
COLOUR_RANGE = 6.0


@dataclass(frozen=True)
class Step:
    """One tensor [T, D or F] on the way through the block, its name, and how it comes about in words."""

    name: str
    words: str
    x: Tensor


@dataclass(frozen=True)
class Recorded:
    """What the model's own run left of one block: the stream, and what each sublayer added, [T, D]."""

    before: Tensor
    attention: Tensor
    middle: Tensor
    hidden: Tensor
    ffn: Tensor
    after: Tensor


def run(parameters: Walk, bench: Bench) -> Result:
    """Steps of the block, the drawn one's picture and histogram, and each sum recomputed from its formula."""
    ran = run_text(bench, parameters.model, parameters.text, record=RECORD)
    block = block_of(ran.loaded, parameters.layer)
    kept = _recorded(ran, parameters.layer)
    steps = walk(block, kept)
    step = steps[parameters.step]
    notes: list[str] = []
    series: list[Series] = [
        _norms(steps),
        _picture(step, numbered(ran.labels), notes),
        _histogram(step, notes),
    ]
    checks, facts = _checks(ran, block, kept, parameters.layer), _facts(ran, block, steps, parameters)
    return Result(series, checks, facts, notes, limits_of(ran.loaded, "layer"))


def _recorded(ran: Ran, layer: int) -> Recorded:
    kept, name = ran.trace.kept, stack_name(ran.loaded)
    at = (name, layer)
    return Recorded(
        kept["resid"][at],
        kept["attn_out"][at],
        kept["mid"][at],
        kept["ffn_act"][at],
        kept["ffn_out"][at],
        kept["resid"][name, layer + 1],
    )


def walk(block: Block, kept: Recorded) -> list[Step]:
    """The eight steps of a block; what the run did not record, inputs of sublayers or sums, is computed."""
    if block.placement == "post":
        return [
            Step("x", "the stream before the block", kept.before),
            Step("attention(x)", "what attention adds", kept.attention),
            Step("x + attention(x)", "their sum", kept.before + kept.attention),
            Step("x′ = norm(sum)", "the stream between the sublayers", kept.middle),
            Step("activation(up x′)", "the expanded layer, after the non-linearity", kept.hidden),
            Step("FFN(x′)", "what the feed-forward layer adds", kept.ffn),
            Step("x′ + FFN(x′)", "their sum", kept.middle + kept.ffn),
            Step("x″ = norm(sum)", "the stream after the block", kept.after),
        ]
    return [
        Step("x", "the stream before the block", kept.before),
        Step("norm(x)", "what attention reads", normed(block, "attention_norm", kept.before)),
        Step("attention(norm(x))", "what attention adds", kept.attention),
        Step("x′ = x + attention", "the stream between the sublayers", kept.middle),
        Step("norm(x′)", "what the feed-forward layer reads", normed(block, "ffn_norm", kept.middle)),
        Step("activation(up norm(x′))", "the expanded layer, after the non-linearity", kept.hidden),
        Step("FFN(norm(x′))", "what the feed-forward layer adds", kept.ffn),
        Step("x″ = x′ + FFN", "the stream after the block", kept.after),
    ]  # fmt: skip


def normed(block: Block, name: str, x: Tensor) -> Tensor:
    """A norm of the block by its formula, fp64, x [T, D]: γ (x − μ)/√(σ² + ε) + β, or γ x/√(mean x² + ε)."""
    norm = block.get_submodule(name)
    assert isinstance(norm.eps, float)
    assert isinstance(norm.gain, Tensor)
    x, bias = x.double(), getattr(norm, "bias", None)
    if bias is None:
        return x / (x.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt() * norm.gain.double()
    centred = x - x.mean(dim=-1, keepdim=True)
    spread = (centred.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
    out: Tensor = centred / spread * norm.gain.double() + bias.double()
    return out


def _checks(ran: Ran, block: Block, kept: Recorded, layer: int) -> list[Check]:
    """Everything again in fp64 from the formula, against what the model's own run recorded."""
    sums = kept.before.double() + kept.attention.double(), kept.middle.double() + kept.ffn.double()
    if block.placement == "post":
        middle, after = (
            normed(block, name, x) for name, x in zip(("attention_norm", "ffn_norm"), sums, strict=True)
        )
        read, norms = (kept.before, kept.middle), ("norm(x + attention)", "norm(x′ + FFN)")
    else:
        middle, after = sums
        read = normed(block, "attention_norm", kept.before), normed(block, "ffn_norm", kept.middle)
        norms = ("x + attention", "x′ + FFN")
    attention, ffn = _attention(ran, block, read[0], layer), _ffn(block, read[1])
    if block.placement == "both":
        attention, ffn = normed(block, "attention_out_norm", attention), normed(block, "ffn_out_norm", ffn)
    pairs = [
        (f"{norms[0]} = x′", middle, kept.middle),
        (f"{norms[1]} = x″", after, kept.after),
        ("attention from weights, values and W_O = recorded", attention, kept.attention),
        ("FFN from its two projections = recorded", ffn, kept.ffn),
    ]
    return [
        Check(f"{name}: largest relative difference", 0.0, apart(a, b), rounding(b), "<=")
        for name, a, b in pairs
    ]


def _attention(ran: Ran, block: Block, read: Tensor, layer: int) -> Tensor:
    """Concat(weights_h · v_h) W_O [T, D] with v from what attention reads, read [T, D]."""
    site = ran.trace.sites[f"{stack_name(ran.loaded)}.self.{layer}"]
    v = _linear(block.attention.v, read).view(site.keys, -1, site.v.shape[-1]).transpose(0, 1)  # [G, S, K]
    v = v.repeat_interleave(site.heads // len(v), dim=0)  # [H, S, K]
    mixed = site.attention(site.all_heads, range(site.queries)).double() @ v  # [H, T, K]
    return _linear(block.attention.o, mixed.transpose(0, 1).flatten(1))  # [T, D]


def _ffn(block: Block, read: Tensor) -> Tensor:
    """Down(activation(up read)), or down(activation(gate read) · up read), for read [T, D]."""
    ffn, activation = block.ffn, block.ffn.activation
    up = _linear(ffn.up, read)  # [T, F]
    hidden = activation(up) if ffn.gate is None else activation(_linear(ffn.gate, read)) * up  # [T, F]
    return _linear(ffn.down, hidden)  # [T, D]


def _linear(layer: torch.nn.Linear, x: Tensor) -> Tensor:
    out = x.double() @ layer.weight.double().T  # [T, F]
    bias = getattr(layer, "bias", None)
    return out if bias is None else out + bias.double()


def _norms(steps: list[Step]) -> Chart:
    lengths = [step.x.float().norm(dim=-1).median().item() for step in steps]
    line = Line("median of the tokens", [step.name for step in steps], lengths)
    return Chart("norms", "Length of the vectors at every step", Axis("step"), Axis("‖x‖"), [line], "bars")


def _picture(step: Step, labels: list[str], notes: list[str]) -> Heatmap:
    x = step.x.float()
    width = x.shape[1]
    if width > COLUMNS:
        notes.append(
            f"The picture shows components 0 to {COLUMNS - 1} of {width}; all numbers are over all of them."
        )
    x = x[:, :COLUMNS]
    end = COLOUR_RANGE * step.x.float().std().item()
    beyond = int((x.abs() > end).sum())
    if beyond:
        notes.append(
            f"Of the {x.numel()} numbers drawn, {counted(beyond, 'lies', 'lie')} beyond ±{end:.3g}, in that "
            "end's colour."
        )
    columns = torch.arange(x.shape[1])
    return Heatmap(
        "tensor", f"{step.name}: {step.words}", Axis("component"), Axis("token"),
        columns, labels, x.clamp(-end, end), "value", diverging=True,
    )  # fmt: skip


def _histogram(step: Step, notes: list[str]) -> Chart:
    values = step.x.float().flatten()
    mean, spread = values.mean().item(), values.std().item()
    low, high = mean - COLOUR_RANGE * spread, mean + COLOUR_RANGE * spread
    inside = values[(values >= low) & (values <= high)]
    if len(inside) < len(values):
        notes.append(
            f"The histogram leaves out {len(values) - len(inside)} of {len(values)} numbers beyond its ends."
        )
    counts, edges = torch.histogram(inside, bins=BINS, range=(low, high), density=True)
    middles = (edges[1:] + edges[:-1]) / 2
    normal = torch.exp(-(((middles - mean) / spread) ** 2) / 2) / (spread * (2 * torch.pi) ** 0.5)
    lines = [
        Line(step.name, middles, counts * len(inside) / len(values)),
        Line("normal, same mean and spread", middles, normal, "theory"),
    ]
    return Chart("histogram", f"Numbers of {step.name}", Axis("value"), Axis("density"), lines)


def _facts(ran: Ran, block: Block, steps: list[Step], parameters: Walk) -> dict[str, object]:
    config = ran.loaded.config.stack
    return {
        "model": parameters.model,
        "text": parameters.text,
        "stack": f"{config.name}.self",
        "layer": parameters.layer,
        "layers": config.layers,
        "width": config.width,
        "tokens": ran.trace.tokens,
        "placement": block.placement,
        "norms_stand": {
            "pre": "before each sublayer",
            "post": "after each sum",
            "both": "before each sublayer and after it",
        }[block.placement],
        "order": {place: block.placement == place for place in ("pre", "post", "both")},
        "norm": "LayerNorm" if isinstance(config.norm, LayerNorm) else "RMSNorm",
        "chosen": steps[parameters.step].name,
        "chosen_step": parameters.step,
        "steps": [_row(step) for step in steps],
    }


def _row(step: Step) -> dict[str, object]:
    x = step.x.double()
    return {
        "step": step.name,
        "what": step.words,
        "branch": not step.name.startswith("x"),
        "shape": " × ".join(map(str, x.shape)),
        "norm": x.norm(dim=-1).median().item(),
        "mean": x.mean().item(),
        "spread": x.std().item(),
        "largest": x.abs().max().item(),
    }
