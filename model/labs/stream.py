"""The residual stream of a real model: what each sublayer writes into it, and what each norm makes of it."""

from collections.abc import Sequence
from statistics import median

import torch
from torch import Tensor

from model.config import LayerNorm
from model.labs.bench import Bench
from model.labs.parameters.block import Stream
from model.labs.reading import Ran, limits_of, run_text
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.vectors import apart, block_of, rms, rounding, stack_name
from model.labs.words import listed

PARTS = {"attention": "attn_out", "ffn": "ffn_out"}
NAMES = {"attention": "attention", "ffn": "feed-forward"}


def run(parameters: Stream, bench: Bench) -> Result:
    """By layer, the median over tokens of what is written and of each norm's input and output."""
    ran = run_text(
        bench, parameters.model, parameters.text, record=("resid", "mid", "attn_out", "ffn_out", "norms")
    )
    block_of(ran.loaded, parameters.layer)
    layers = range(ran.loaded.config.stack.layers)
    before = {part: [_norm_input(ran, layer, part) for layer in layers] for part in PARTS}
    after = {part: [_norm_output(ran, layer, part) for layer in layers] for part in PARTS}
    shares = {part: [_share(ran, layer, part) for layer in layers] for part in PARTS}
    series = [_writes(shares), _stream(ran), _norms(before, after)]
    layer = parameters.layer
    rows = [_row(ran, layer, part, before[part][layer], after[part][layer]) for part in PARTS]
    checks = [
        check
        for part in PARTS
        for check in _checks(ran, layer, part, before[part][layer], after[part][layer])
    ]
    checks += _drawn(ran, series)
    facts = {**_facts(ran, parameters, shares), "norms": rows}
    return Result(series, checks, facts, limits=limits_of(ran.loaded, "layer"))


def _norm_input(ran: Ran, layer: int, part: str) -> Tensor:
    """What the norm of a sublayer reads, [T, D]: the stream, or the sum where norms stand after it."""
    stream = _stream_at(ran, layer, part)
    post = ran.loaded.config.stack.norm_placement == "post"
    return stream + _written(ran, layer, part) if post else stream


def _norm_output(ran: Ran, layer: int, part: str) -> Tensor:
    """What the norm of a sublayer makes of it, [T, D]: recorded where it is the stream, else applied."""
    if ran.loaded.config.stack.norm_placement == "post":
        return (
            ran.trace.kept["mid"][stack_name(ran.loaded), layer]
            if part == "attention"
            else ran.trace.resid[stack_name(ran.loaded), layer + 1]
        )
    out: Tensor = block_of(ran.loaded, layer).get_submodule(f"{part}_norm")(
        _norm_input(ran, layer, part)
    )  # [T, D]
    return out


def _stream_at(ran: Ran, layer: int, part: str) -> Tensor:
    return ran.trace.kept["resid" if part == "attention" else "mid"][stack_name(ran.loaded), layer]


def _written(ran: Ran, layer: int, part: str) -> Tensor:
    return ran.trace.kept[PARTS[part]][stack_name(ran.loaded), layer]


def _share(ran: Ran, layer: int, part: str) -> float:
    """How long what a sublayer adds is, against the stream it is added to: median over the tokens."""
    return (
        (rms(_written(ran, layer, part).double()) / rms(_stream_at(ran, layer, part).double()))
        .median()
        .item()
    )


def _writes(shares: dict[str, list[float]]) -> Chart:
    lines = [Line(NAMES[part], list(range(len(share))), share) for part, share in shares.items()]
    axes = Axis("layer"), Axis("‖added‖ / ‖stream‖", log=True)
    return Chart("writes", "How much each sublayer writes, against the stream it finds", *axes, lines)


def _stream(ran: Ran) -> Chart:
    """Scale of the stream before each layer and after the last one: its median token and its largest."""
    scales = [rms(x.double()) for _, x in sorted(ran.trace.resid.items())]
    places = list(range(len(scales)))
    lines = [
        Line("median token", places, [scale.median().item() for scale in scales]),
        Line("largest token", places, [scale.max().item() for scale in scales]),
    ]
    axes = (
        Axis("layer; the last point is after the last one"),
        Axis("root mean square of the stream", log=True),
    )
    return Chart("stream", "Scale of the residual stream by depth", *axes, lines)


def _norms(before: dict[str, list[Tensor]], after: dict[str, list[Tensor]]) -> Chart:
    lines = [
        Line(
            f"{side} the {NAMES[part]} norm",
            list(range(len(xs))),
            [rms(x.double()).median().item() for x in xs],
        )
        for part in PARTS
        for side, xs in (("into", before[part]), ("out of", after[part]))
    ]
    axes = Axis("layer"), Axis("root mean square, median token", log=True)
    return Chart("norms", "Scale before and after every norm", *axes, lines)


def _ungained(ran: Ran, layer: int, part: str, out: Tensor) -> Tensor:
    """A norm's output [T, D] as it was before γ and β."""
    norm = block_of(ran.loaded, layer).get_submodule(f"{part}_norm")
    assert isinstance(norm.gain, Tensor)
    bias = getattr(norm, "bias", None)
    return (out.double() if bias is None else out.double() - bias.double()) / norm.gain.double()


def _row(ran: Ran, layer: int, part: str, before: Tensor, after: Tensor) -> dict[str, object]:
    stages = {
        "before": before.double(),
        "normalised": _ungained(ran, layer, part, after),
        "after γ, β": after.double(),
    }
    row: dict[str, object] = {"norm": NAMES[part]}
    for stage, x in stages.items():
        row |= {f"mean {stage}": x.mean(dim=-1).median().item(), f"rms {stage}": rms(x).median().item()}
    return row


def _checks(ran: Ran, layer: int, part: str, before: Tensor, after: Tensor) -> list[Check]:
    """The recorded statistics are the stream's, and the norm's output has mean 0 and scale 1 before γ, β."""
    name = NAMES[part]
    recorded = _recorded(ran, layer, part)  # [T, 2]
    own = torch.stack((before.double().mean(dim=-1), rms(before.double())), dim=-1)  # [T, 2]
    x = before.double()
    spread = x.var(dim=-1, correction=0) if _centres(ran) else x.square().mean(dim=-1)  # [T]
    eps = ran.loaded.config.stack.norm.eps
    expected = (spread / (spread + eps)).sqrt().median().item()
    out = _ungained(ran, layer, part, after)
    told, scale = apart(own, recorded), rms(out).median().item()
    kept = f"{name} norm, statistics recorded in the run: relative difference"
    unit = f"{name} norm, rms of its output before γ and β"
    checks = [
        Check(kept, 0.0, told, rounding(recorded), "<=", about="norms"),
        Check(unit, expected, scale, 1e-4, about="norms"),
    ]
    if _centres(ran):
        mean = out.mean(dim=-1).abs().max().item()
        checks.append(
            Check(
                f"{name} norm, largest mean of its output before γ and β",
                0,
                mean,
                rounding(after),
                "<=",
                about="norms",
            )
        )
    return checks


def _drawn(ran: Ran, series: Sequence[Chart]) -> list[Check]:
    """The pictures' numbers by other ways: differences of streams, and statistics that the run recorded."""
    writes, scales, norms = series
    layers = range(ran.loaded.config.stack.layers)
    slack = rounding(ran.trace.resid[stack_name(ran.loaded), 0])
    shares = [
        [_share_again(ran, layer, part, _told(line, layer)) for layer in layers]
        for line, part in zip(writes.lines, PARTS, strict=True)
    ]
    into = [
        abs(_told(line, layer) / _recorded(ran, layer, part)[:, 1].double().median().item() - 1)
        for line, part in zip(norms.lines[::2], PARTS, strict=True)
        for layer in layers
    ]
    lengths = [x.double().norm(dim=-1) / x.shape[-1] ** 0.5 for _, x in sorted(ran.trace.resid.items())]
    scale = [
        abs(_told(line, place) / length.quantile(share, interpolation="lower").item() - 1)
        for line, share in zip(scales.lines, (0.5, 1.0), strict=True)
        for place, length in enumerate(lengths)
    ]
    what = "what was added, from the stream after it: largest difference of its share"
    return [
        *(
            Check(f"{NAMES[part]}: {what}", 0.0, max(found), 10 * slack, "<=", about="writes")
            for part, found in zip(PARTS, shares, strict=True)
        ),
        Check(
            "‖x‖/√D of the stream: largest relative difference",
            0.0, max(scale), slack, "<=", about="stream",
        ),
        Check(
            "scale into every norm, recorded in the run: largest relative difference",
            0.0, max(into), slack, "<=", about="norms",
        ),
    ]  # fmt: skip


def _told(line: Line, place: int) -> float:
    value = line.y[place]
    assert isinstance(value, float)
    return value


def _recorded(ran: Ran, layer: int, part: str) -> Tensor:
    """Mean and root mean square of what a norm read, as its run recorded them, [T, 2]."""
    return ran.trace.kept[f"norms/{part}_norm"][stack_name(ran.loaded), layer]


def _share_again(ran: Ran, layer: int, part: str, drawn: float) -> float:
    """How far a drawn share is from that of what the stream gained; under a norm after the sum, taken off."""
    before = _stream_at(ran, layer, part).double()
    after = (
        _stream_at(ran, layer, "ffn")
        if part == "attention"
        else ran.trace.resid[stack_name(ran.loaded), layer + 1]
    )
    total = after.double()
    if ran.loaded.config.stack.norm_placement == "post":
        total = _unnormed(ran, layer, part, after)
    added = (total - before).norm(dim=-1) / before.norm(dim=-1)  # [T]
    # Rounding of a sum that is much longer than what was added, or than the stream, is not the lab's.
    worse = (total.norm(dim=-1) / before.norm(dim=-1)).median().clamp(min=1)
    return float(abs(added.median().item() - drawn) / worse)


def _unnormed(ran: Ran, layer: int, part: str, out: Tensor) -> Tensor:
    """What a norm read, from what it made of it and the statistics that its run recorded, [T, D]."""
    mean, root = _recorded(ran, layer, part).double().unbind(dim=-1)  # [T] each
    eps = ran.loaded.config.stack.norm.eps
    square = root**2 - mean**2 if _centres(ran) else root**2
    read = _ungained(ran, layer, part, out) * (square + eps).sqrt()[:, None]  # [T, D]
    return read + mean[:, None] if _centres(ran) else read


def _centres(ran: Ran) -> bool:
    return isinstance(ran.loaded.config.stack.norm, LayerNorm)


def _facts(ran: Ran, parameters: Stream, shares: dict[str, list[float]]) -> dict[str, object]:
    scales = [rms(x.double()).median().item() for _, x in sorted(ran.trace.resid.items())]
    return {
        "model": parameters.model,
        "text": parameters.text,
        "layer": parameters.layer,
        "layers": ran.loaded.config.stack.layers,
        "placement": ran.loaded.config.stack.norm_placement,
        "norm": "LayerNorm" if _centres(ran) else "RMSNorm",
        "pre": ran.loaded.config.stack.norm_placement != "post",
        "more": listed(
            [
                f"{NAMES[part]} in layer {layer} ({share:.4g})"
                for part, values in shares.items()
                for layer, share in enumerate(values)
                if share > 1
            ]
        ),
        "middle": median(share for values in shares.values() for share in values),
        "first": scales[0],
        "last": scales[-1],
        "attention": {"layer": _max_at(shares["attention"]), "share": max(shares["attention"])},
        "ffn": {"layer": _max_at(shares["ffn"]), "share": max(shares["ffn"])},
    }


def _max_at(values: Sequence[float]) -> int:
    """The place of the largest."""
    return max(range(len(values)), key=values.__getitem__)
