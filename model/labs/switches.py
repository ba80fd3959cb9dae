"""A real model with residuals, norms or sublayers left out: what becomes of its stream and its output."""

import torch
import torch.nn.functional as F
from torch import Tensor

from model.heads import sentence_vector
from model.labs.bench import Bench
from model.labs.parameters.block import Switches
from model.labs.reading import limits_of, read, run_ids
from model.labs.result import Axis, Chart, Line, Result
from model.labs.vectors import block_of, check_length, rms, sameness, seen, stack_name
from model.loading import LoadedModel
from model.trace import Trace

TOP = 8


def run(parameters: Switches, bench: Bench) -> Result:
    """The same text on the same weights twice: as the model is, and with the parts left out."""
    loaded = bench.model(parameters.model)
    encoded = read(loaded, parameters.model, parameters.text)
    check_length(encoded)
    block_of(loaded, parameters.layer if parameters.where == "one layer" else 0)
    logits = loaded.config.readout == "logits"
    positions = [len(encoded.ids) - 1] if logits else []
    own, changed = (
        run_ids(loaded, encoded, plan, ("resid",), positions) for plan in ([], _plan(loaded, parameters))
    )
    notes = [] if changed.finite else [_where_lost(changed)]
    if own.tokens == 1:
        notes.append("The text has one token: there are no two to compare.")
    output = _prediction(loaded, own, changed) if logits else _vector(own, changed)
    series = [_likeness(own, changed), _sameness(own, changed), _scale(own, changed)]
    facts = {"model": parameters.model, "text": parameters.text, "readout": loaded.config.readout, **output}
    return Result(series, [], {**facts, **_ends(own, changed)}, notes, limits_of(loaded, "layer"))


def _plan(loaded: LoadedModel, parameters: Switches) -> list[dict[str, object]]:
    sublayers = ("attention", "ffn") if parameters.around == "both" else (parameters.around,)
    site = None if parameters.where == "every layer" else f"{stack_name(loaded)}.self.{parameters.layer}"
    return [
        {"kind": f"drop_{parameters.leave_out}", "sublayer": sublayer, "sites": site}
        for sublayer in sublayers
    ]


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
    return {
        "own_sameness": sameness(streams[0]),
        "changed_sameness": sameness(streams[1]),
        "own_scale": rms(streams[0]).median().item(),
        "changed_scale": rms(streams[1]).median().item(),
    }


def _where_lost(changed: Trace) -> str:
    streams = _streams(changed)
    lost = next((layer for layer, x in enumerate(streams) if not torch.isfinite(x).all()), len(streams))
    return f"Without these parts the numbers grew out of range before layer {lost}: lines end there."
