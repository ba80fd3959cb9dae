"""A real model with residuals, norms or sublayers left out: what becomes of its stream and its output."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from model.heads import sentence_vector
from model.labs.bench import Bench
from model.labs.block import normed
from model.labs.parameters.block import Switches
from model.labs.reading import limits_of, read, run_ids
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.vectors import apart, block_of, rms, rounding, sameness, seen, stack_name
from model.loading import LoadedModel
from model.recorder import Recordable
from model.stack import Block
from model.trace import Trace

TOP = 8
RECORD: tuple[Recordable, ...] = ("resid", "mid", "attn_out", "ffn_out")
ADDED = {"attention": "attn_out", "ffn": "ffn_out"}
# Likeness of tokens so near to 1 that it is none to tell apart, in words.
SAME, MOVED = 0.999, 0.01


def run(parameters: Switches, bench: Bench) -> Result:
    """The same text on the same weights twice: as the model is, and with the parts left out."""
    loaded = bench.model(parameters.model)
    encoded = read(loaded, parameters.model, parameters.text)
    block_of(loaded, parameters.layer if parameters.where == "one layer" else 0)
    logits = loaded.config.readout == "logits"
    positions = [len(encoded.ids) - 1] if logits else []
    own, changed = (
        run_ids(loaded, encoded, plan, RECORD, positions) for plan in ([], _plan(loaded, parameters))
    )
    notes = [] if changed.finite else [_where_lost(changed)]
    if own.tokens == 1:
        notes.append("The text has one token: there are no two to compare.")
    output = _prediction(loaded, own, changed) if logits else _vector(own, changed)
    series = [_likeness(own, changed), _sameness(own, changed), _scale(own, changed)]
    facts = {"model": parameters.model, "text": parameters.text, "readout": loaded.config.readout, **output}
    facts |= {**_ends(own, changed), "without": _without(parameters)}
    checks = [
        *_unchanged(parameters, series[0]),
        *_wiring(loaded, parameters, changed),
        *_again(own, changed, series),
    ]
    return Result(series, checks, facts, notes, limits_of(loaded, "layer"))


def _plan(loaded: LoadedModel, parameters: Switches) -> list[dict[str, object]]:
    sublayers = ("attention", "ffn") if parameters.around == "both" else (parameters.around,)
    site = None if parameters.where == "every layer" else f"{stack_name(loaded)}.self.{parameters.layer}"
    return [
        {"kind": f"drop_{parameters.leave_out}", "sublayer": sublayer, "sites": site}
        for sublayer in sublayers
    ]


def _without(parameters: Switches) -> str:
    """What is left out, in words that follow "without"."""
    of = {"attention": "attention", "ffn": "feed-forward", "both": "attention and feed-forward"}[
        parameters.around
    ]
    where = "any layer" if parameters.where == "every layer" else f"layer {parameters.layer}"
    what = {"residual": f"the residuals around {of}", "norm": f"the norms of {of}", "sublayer": of}
    return f"{what[parameters.leave_out]} in {where}"


def _changed_layers(loaded: LoadedModel, parameters: Switches) -> list[int]:
    every = parameters.where == "every layer"
    return list(range(loaded.config.stack.layers)) if every else [parameters.layer]


def _unchanged(parameters: Switches, likeness: Chart) -> list[Check]:
    """Nothing can change before the first layer that lost a part: the drawn cosines are 1 up to there."""
    first = 0 if parameters.where == "every layer" else parameters.layer
    lowest = min(float(value) for value in list(likeness.lines[0].y)[: first + 1] if value is not None)
    return [
        Check(
            f"cosine up to the input of layer {first}, where a part is first missing",
            1,
            lowest,
            1e-6,
            about="likeness",
        )
    ]


def _wiring(loaded: LoadedModel, parameters: Switches, changed: Trace) -> list[Check]:
    """The changed run's streams, against its sublayers' outputs put together without the part left out."""
    name, worst, seen_any = stack_name(loaded), 0.0, False
    for layer in _changed_layers(loaded, parameters):
        block = block_of(loaded, layer)
        ends = [("attention", "resid", "mid", layer), ("ffn", "mid", "resid", layer + 1)]
        for sublayer, start, end, place in ends:
            before = changed.kept[start][name, layer].double()
            after = changed.kept[end][name, place].double()
            if not (torch.isfinite(before).all() and torch.isfinite(after).all()):
                continue
            left = parameters.leave_out if parameters.around in (sublayer, "both") else ""
            added = changed.kept.get(ADDED[sublayer], {}).get((name, layer))
            again = _together(block, sublayer, left, before, added)
            worst, seen_any = max(worst, apart(again, after)), True
    what = "the changed layers put together by hand: largest relative difference of their streams"
    slack = rounding(changed.kept["mid"][name, 0])
    return [Check(what, 0, worst, slack, "<=")] if seen_any else []


def _together(block: Block, sublayer: str, left_out: str, x: Tensor, added: Tensor | None) -> Tensor:
    """The stream after a sublayer, from the stream x [T, D] before it and what it adds, [T, D]."""
    if left_out == "sublayer" or added is None:
        return x
    total = added.double() if left_out == "residual" else x + added.double()
    if block.placement != "post" or left_out == "norm":
        return total
    return normed(block, f"{sublayer}_norm", total)


def _again(own: Trace, changed: Trace, series: list[Chart]) -> list[Check]:
    """The drawn likeness of tokens and scale of both runs by other formulas."""
    checks = []
    for chart, again, what in (
        (series[1], _alike, "largest difference"),
        (series[2], _scaled, "largest relative difference"),
    ):
        found = [
            abs(float(drawn) - value) / (1 if chart.id == "sameness" else value)
            for line, trace in zip(chart.lines, (own, changed), strict=True)
            for drawn, x in zip(line.y, _streams(trace), strict=True)
            if drawn is not None and torch.isfinite(x).all() and math.isfinite(value := again(x))
        ]
        if found:
            name = {"sameness": "(‖Σ u‖² − T) / T(T − 1) of the tokens' directions u", "scale": "‖x‖/√D"}[
                chart.id
            ]
            checks.append(Check(f"{name} of both runs: {what}", 0, max(found), 1e-6, "<=", about=chart.id))
    return checks


def _alike(x: Tensor) -> float:
    tokens, x = len(x), x / x.abs().amax(dim=-1, keepdim=True)
    total = F.normalize(x, dim=-1).sum(dim=0).square().sum().item()
    return (total - tokens) / (tokens * (tokens - 1)) if tokens > 1 else math.nan


def _scaled(x: Tensor) -> float:
    return float((torch.linalg.vector_norm(x, dim=-1) / x.shape[-1] ** 0.5).median())


def _streams(trace: Trace) -> list[Tensor]:
    return [x.double() for _, x in sorted(trace.resid.items())]


def _likeness(own: Trace, changed: Trace) -> Chart:
    """How far the two runs have come apart: cosine of each token's two vectors, mean over tokens."""
    pairs = zip(_streams(own), _streams(changed), strict=True)
    cosines = [F.cosine_similarity(a, b, dim=-1).mean().item() for a, b in pairs]
    line = Line("cosine with the model's own", list(range(len(cosines))), cosines)
    return Chart(
        "likeness", "How much of the own stream is left", _depth(), Axis("cosine, mean of tokens"), [line]
    )


def _sameness(own: Trace, changed: Trace) -> Chart:
    lines = [
        Line(name, list(range(len(_streams(trace)))), [sameness(x) for x in _streams(trace)])
        for name, trace in (("the model's own", own), ("with the parts left out", changed))
    ]
    axis = Axis("cosine between tokens, mean")
    return Chart(
        "sameness", "How alike the tokens' vectors are; 1: no longer told apart", _depth(), axis, lines
    )


def _scale(own: Trace, changed: Trace) -> Chart:
    lines = [
        Line(name, list(range(len(_streams(trace)))), [rms(x).median().item() for x in _streams(trace)])
        for name, trace in (("the model's own", own), ("with the parts left out", changed))
    ]
    return Chart(
        "scale", "Scale of the stream", _depth(), Axis("root mean square, median token", log=True), lines
    )


def _depth() -> Axis:
    return Axis("layer; the last point is after the last one")


def _prediction(loaded: LoadedModel, own: Trace, changed: Trace) -> dict[str, object]:
    """Probabilities of the next token before and after; `shift` is their total variation."""
    before, after = (_probabilities(trace) for trace in (own, changed))  # [V]
    best = (
        torch.cat((before.topk(TOP).indices, after.topk(TOP).indices))
        if changed.finite
        else before.topk(TOP).indices
    )
    rows = [
        {"next token": _label(loaded, id_), "p, own": before[id_].item(), "p, changed": after[id_].item()}
        for id_ in dict.fromkeys(best.tolist())
    ]
    return {
        "output": rows,
        "own_answer": rows[0]["next token"],
        "changed_answer": _label(loaded, int(after.argmax())) if changed.finite else "nothing",
        "shift": (before - after).abs().sum().item() / 2,
    }


def _probabilities(trace: Trace) -> Tensor:
    assert trace.logits is not None
    return torch.softmax(trace.logits[-1].double(), dim=-1)  # [V]


def _label(loaded: LoadedModel, id_: int) -> str:
    return str(id_) if loaded.encoder is None else seen(loaded.encoder.label(id_))


def _vector(own: Trace, changed: Trace) -> dict[str, object]:
    """A model without a prediction: the cosine of its two vectors for the whole text."""
    vectors = sentence_vector(own.final.double()), sentence_vector(changed.final.double())
    cosine = (vectors[0] @ vectors[1]).item()
    return {
        "output": [{"output": "vector of the text", "cosine with the model's own": cosine}],
        "cosine": cosine,
    }


def _ends(own: Trace, changed: Trace) -> dict[str, object]:
    streams = _streams(own)[-1], _streams(changed)[-1]
    alike = sameness(streams[0]), sameness(streams[1])
    return {
        "own_sameness": alike[0],
        "changed_sameness": alike[1],
        "compared": all(map(math.isfinite, alike)),
        "verdict": _verdict(*alike),
        "own_scale": rms(streams[0]).median().item(),
        "changed_scale": rms(streams[1]).median().item(),
    }


def _verdict(own: float, changed: float) -> str:
    """What became of the tokens, as a clause."""
    if changed > SAME and changed > own:
        return "the tokens can no longer be told apart: all point one way"
    if abs(changed - own) < MOVED:
        return "the tokens stay as far apart as they were"
    return f"the tokens move {'closer together' if changed > own else 'farther apart'}, but can be told apart"


def _where_lost(changed: Trace) -> str:
    streams = _streams(changed)
    lost = next((layer for layer, x in enumerate(streams) if not torch.isfinite(x).all()), len(streams))
    return f"Without these parts the numbers grew out of range before layer {lost}: lines end there."
