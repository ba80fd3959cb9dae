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
from model.labs.looking_across import Seen, follow, look, plain_surprise
from model.labs.one_head import numbered, spoken, tolerance
from model.labs.parameters.cross_attention import CrossAttention
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Numbers, Result, Series
from model.labs.words import counted, one_of
from model.loading import LoadedModel

COLUMNS = 96
# A rank correlation from which on a head is said to go through its source in order.
IN_ORDER = 0.9
# Tokens from which on that is no accident: of all orders of six 1 in 120 correlates so, of five 1 in 24.
LEAST = 6


def run(parameters: CrossAttention, bench: Bench) -> Result:
    """All heads of the cross-attention, one in full, and the same target without it."""
    loaded = bench.model(parameters.model)
    given = source(loaded, parameters)
    _check_head(loaded, parameters)
    bench.report(0.1, "hearing or reading the source, and writing", None)
    tokens = target(loaded, given, parameters)
    if len(tokens.ids) <= len(loaded.config.start):
        raise InputError(_nothing(parameters))
    bench.report(0.6, "looking across", None)
    return _result(look(loaded, given, tokens), parameters)


def _nothing(parameters: CrossAttention) -> str:
    if parameters.target:
        return "The target holds nothing but what starts or ends a text: write a word."
    return f"{parameters.model} writes nothing for this source: give a target to read."


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
    return Result(series, _checks(seen, parameters, series), facts, _notes(seen, layer, head), limits)


def _check_head(loaded: LoadedModel, parameters: CrossAttention) -> None:
    """Raises InputError for a layer or head that the decoder does not have."""
    stack = loaded.config.stack
    assert stack.cross is not None
    counts = {"layer": (parameters.layer, stack.layers), "head": (parameters.head, stack.cross.heads)}
    for name, (index, count) in counts.items():
        if index >= count:
            raise InputError(f"{parameters.model}'s decoder has no {name} {index}: {one_of(count)}.")


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


def _checks(seen: Seen, parameters: CrossAttention, series: Sequence[Series]) -> list[Check]:
    drawn = {one.id: one for one in series}
    listening, places, worth = drawn["listening"], drawn["places"], drawn["worth"]
    assert isinstance(listening, Heatmap)
    assert isinstance(places, Chart)
    assert isinstance(worth, Chart)
    weights = listening.values.double()  # [T, columns]
    sums = _farthest(weights.sum(1) + _behind(seen, parameters.layer, parameters.head), 1.0)
    fine, off = tolerance(seen.loaded), _off_centre(seen, weights, places.lines[0].y)
    plain = plain_surprise(seen.loaded, seen.source, seen.target)[seen.first - 1 :].mean().item()
    shown = torch.as_tensor(worth.lines[0].y).double().mean().item()
    # Logits of some tens, each a sum of some hundred terms, in two orders of adding.
    near = 100 * fine * max(1.0, plain)
    checks = [
        Check("sum of a drawn row, farthest from 1", 1.0, sums, fine, about="listening"),
        Check("columns between a centre and that of the drawn row, at most", 0.0, off, 1.0, about="places"),
        Check("mean surprise, by a plain run and cross-entropy", plain, shown, near, about="worth"),
    ]  # fmt: skip
    if seen.source.recording is not None and not parameters.target:
        said = _words(seen.source.recording.said)
        heard = _words(_sentence(seen))
        right = sum(a == b for a, b in zip(said, heard, strict=False))
        checks.append(
            Check(
                "words written as a listener hears them",
                len(said),
                right,
                origin="published",
                about="listening",
            )
        )
    return checks


def _behind(seen: Seen, layer: int, head: int) -> Tensor:
    """The weight [T] of each row on what is not drawn: the silence behind the sound."""
    silence: Tensor = seen.weights[
        layer, head, :, seen.source.sounding or seen.weights.shape[-1] :
    ]  # [T, silent]
    return silence.double().sum(-1)  # [T]


def _off_centre(seen: Seen, weights: Tensor, centres: Numbers) -> float:
    """The largest distance between the centres that are drawn and those of the drawn rows, in columns."""
    step = -(-seen.source.sounding // COLUMNS) if seen.source.sounding else 1
    column = seconds(step) if seen.source.sounding else 1.0
    places = torch.arange(weights.shape[1], dtype=torch.float64) * column
    rows = weights[seen.first :]  # [T', columns]
    found = (rows * places).sum(1) / rows.sum(1).clamp(min=1e-12)  # [T']
    return float((found - torch.as_tensor(centres).double()).abs().max() / column)


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
        "given": bool(parameters.target),
        "name": f"L{parameters.layer}H{parameters.head}",
        "layer": parameters.layer,
        "head": parameters.head,
        "queries": len(seen.target.ids),
        "keys": len(seen.source.encoded.ids),
        "looks": _looks(seen, centres),
        "first_place": centres[seen.first].item(),
        "last_place": centres[-1].item(),
        "follows": follows[parameters.layer, parameters.head].item(),
        "layers": follows.shape[0],
        "heads": follows.shape[1],
        "all_heads": follows.numel(),
        "followers": int((follows >= IN_ORDER).sum()),
        "has_order": len(seen.target.ids) - seen.first >= LEAST,
        "in_order": IN_ORDER,
        "unheard": "without having heard anything"
        if seen.source.sounding
        else "without having read anything",
        "surprise": seen.mean_surprise[0],
        "surprise_without": seen.mean_surprise[1],
    }


def _looks(seen: Seen, centres: Tensor) -> str:
    """Where the first token that is written looks, and the last, where there are two."""
    tokens = seen.target.tokens[seen.first :]
    names = [f"“{spoken(token.text)}”" for token in tokens]
    places = [
        f"{place:.2f} s" if seen.source.sounding else f"place {place:.1f}"
        for place in centres[seen.first :].tolist()
    ]
    first = f"the token {names[0]} looks at {places[0]}"
    if len(names) == 1:
        return f"{first}, the only one"
    return f"{first}, {names[-1]} at {places[-1]}"


def _notes(seen: Seen, layer: int, head: int) -> list[str]:
    notes = list(seen.target.notices)
    written = len(seen.target.ids) - seen.first
    if written < LEAST:
        few = counted(written, "token")
        notes.append(f"Which heads go through the source in order cannot be told from {few}: write {LEAST}.")
    if seen.source.sounding:
        heard, sounding = seconds(seen.weights.shape[-1]), seconds(seen.source.sounding)
        silent = seen.weights[layer, head, :, seen.source.sounding :].sum(-1)  # [T]
        notes.append(
            f"The model hears {heard:g} s; the picture ends where the sound does, at {sounding:.2f} s. Up to "
            f"{silent.max().item():.2g} of a row's weight lies on the silence behind, and is no part of its "
            "centre."
        )
    return notes
