"""Cross-attention of a real model: where each written token looks in what was heard or read.

Queries come from the decoder, keys and values from the encoder's output (Vaswani et al. 2017, section 3.2.3).
"""

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.beside import seconds, source, target
from model.labs.looking_across import Seen, follow, look
from model.labs.one_head import numbered, spoken, tolerance
from model.labs.parameters.cross_attention import CrossAttention
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result, Series
from model.loading import LoadedModel

COLUMNS = 96
# A rank correlation from which on a head is said to go through its source in order.
IN_ORDER = 0.9


def run(parameters: CrossAttention, bench: Bench) -> Result:
    """All heads of the cross-attention, one in full, and the same target without it."""
    loaded = bench.model(parameters.model)
    given = source(loaded, parameters)
    _check_head(loaded, parameters)
    bench.report(0.1, "hearing or reading the source, and writing", None)
    tokens = target(loaded, given, parameters)
    if len(tokens.ids) <= len(loaded.config.start):
        raise InputError(f"{parameters.model} writes nothing for this source: give a target to read.")
    bench.report(0.6, "looking across", None)
    return _result(look(loaded, given, tokens), parameters)


def _result(seen: Seen, parameters: CrossAttention) -> Result:
    layer, head = parameters.layer, parameters.head
    centres = seen.centres  # [L, H, T]
    follows = follow(centres[..., seen.first :])  # [L, H]
    series: list[Series] = [
        _listening(seen, layer, head),
        _places(seen, centres[layer, head], f"L{layer}H{head}"),
        _following(follows),
        _worth(seen),
    ]
    facts = _facts(seen, parameters, centres[layer, head], follows)
    limits = {"layer": follows.shape[0] - 1, "head": follows.shape[1] - 1}
    return Result(series, _checks(seen, parameters), facts, _notes(seen, layer, head), limits)


def _check_head(loaded: LoadedModel, parameters: CrossAttention) -> None:
    """Raises InputError for a layer or head that the decoder does not have."""
    stack = loaded.config.stack
    assert stack.cross is not None
    counts = {"layer": (parameters.layer, stack.layers), "head": (parameters.head, stack.cross.heads)}
    for name, (index, count) in counts.items():
        if index >= count:
            raise InputError(
                f"{parameters.model}'s decoder has no {name} {index}: choose one from 0 to {count - 1}."
            )


def _source_axis(seen: Seen) -> Axis:
    return Axis("time in the sound (s)" if seen.source.sounding else "source token")


def _listening(seen: Seen, layer: int, head: int) -> Heatmap:
    """One head's weights, frames of sound added up into at most COLUMNS columns."""
    weights = seen.weights[layer, head]  # [T, S]
    columns: Sequence[str] = numbered([token.text for token in seen.source.encoded.tokens])
    if seen.source.sounding:
        step = -(-seen.source.sounding // COLUMNS)
        starts = range(0, seen.source.sounding, step)
        ends = [min(start + step, seen.source.sounding) for start in starts]
        parts = [weights[:, start:end].sum(1) for start, end in zip(starts, ends, strict=True)]
        weights = torch.stack(parts, dim=1)  # [T, columns]
        columns = [f"{seconds(start):.2f}" for start in starts]
    title = f"Cross-attention L{layer}H{head}: where each token looks"
    axis = _source_axis(seen)
    return Heatmap("listening", title, axis, Axis("target token"), columns, seen.labels, weights, "weight")


def _places(seen: Seen, centres: Tensor, name: str) -> Chart:
    """The centre of each row for one head: a line that rises where the head follows its source."""
    labels = seen.labels[seen.first :]
    line = Line(name, labels, centres[seen.first :])
    return Chart("places", "Centre of each token's weights", Axis("target token"), _source_axis(seen), [line])


def _following(follows: Tensor) -> Heatmap:
    layers, heads = follows.shape
    return Heatmap(
        "following", "How far each head follows its source", Axis("head"), Axis("layer"),
        [str(head) for head in range(heads)], [str(layer) for layer in range(layers)], follows,
        "rank correlation, −1 to 1", diverging=True,
    )  # fmt: skip


def _worth(seen: Seen) -> Chart:
    labels = seen.labels[seen.first :]
    lines = [
        Line("with cross-attention", labels, seen.surprise[seen.first :]),
        Line("without", labels, seen.alone[seen.first :]),
    ]
    title = "Surprise at each token of the target"
    return Chart("worth", title, Axis("target token"), Axis("−log p (nats)"), lines, kind="bars")


def _checks(seen: Seen, parameters: CrossAttention) -> list[Check]:
    sums = seen.weights.double().sum(-1)  # [L, H, T]
    fine = tolerance(seen.loaded)
    checks = [
        Check("sum of a row, farthest from 1", 1.0, _farthest(sums, 1.0), fine, about="listening"),
        Check(
            "mean surprise without cross-attention, at least that with it",
            *seen.mean_surprise, relation=">=", origin="measured", about="worth",
        ),
    ]  # fmt: skip
    if seen.source.recording is not None and not parameters.target:
        said = _words(seen.source.recording.said)
        heard = _words(_sentence(seen))
        right = sum(a == b for a, b in zip(said, heard, strict=False))
        checks.append(Check("words written as a listener hears them", len(said), right, origin="published"))
    return checks


def _farthest(values: Tensor, wanted: float) -> float:
    flat = values.flatten()
    return flat[(flat - wanted).abs().argmax()].item()


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def _sentence(seen: Seen) -> str:
    encoder = seen.loaded.encoder
    ids = seen.target.ids[seen.first :]
    return " ".join(str(id_) for id_ in ids) if encoder is None else encoder.decode(ids).strip()


def _facts(seen: Seen, parameters: CrossAttention, centres: Tensor, follows: Tensor) -> dict[str, object]:
    heard = seen.source.recording
    return {
        "source": parameters.text if heard is None else heard.said,
        "origin": "" if heard is None else f"{heard.source} ({heard.licence})",
        "recording": "" if heard is None else heard.name,
        "written": _sentence(seen),
        "name": f"L{parameters.layer}H{parameters.head}",
        "layer": parameters.layer,
        "head": parameters.head,
        "queries": len(seen.target.ids),
        "keys": len(seen.source.encoded.ids),
        "first_token": spoken(seen.target.tokens[seen.first].text),
        "first_place": centres[seen.first].item(),
        "last_token": spoken(seen.target.tokens[-1].text),
        "last_place": centres[-1].item(),
        "follows": follows[parameters.layer, parameters.head].item(),
        "layers": follows.shape[0],
        "heads": follows.shape[1],
        "all_heads": follows.numel(),
        "followers": int((follows >= IN_ORDER).sum()),
        "in_order": IN_ORDER,
        "surprise": seen.mean_surprise[0],
        "surprise_without": seen.mean_surprise[1],
    }


def _notes(seen: Seen, layer: int, head: int) -> list[str]:
    notes = list(seen.target.notices)
    if seen.source.sounding:
        heard, sounding = seconds(seen.weights.shape[-1]), seconds(seen.source.sounding)
        silent = seen.weights[layer, head, :, seen.source.sounding :].sum(-1)  # [T]
        notes.append(
            f"The model hears {heard:g} s; the picture ends where the sound does, at {sounding:.2f} s. Up to "
            f"{silent.max().item():.2g} of a row's weight lies on the silence behind, and is no part of its "
            "centre."
        )
    return notes
