"""One word in two sentences: where its heads look, and how its vector parts from itself, layer by layer."""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from model.config import NoPosition
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.context import Context
from model.labs.reading import limits_of
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result, Series
from model.labs.word_links import repeated_note, same_distance
from model.labs.word_use import Use, similarity, use
from model.labs.words import counted, one_of
from model.loading import LoadedModel
from model.rules import Causal

MAX_SENSES = 8
STRONGEST = 6
LEGEND = 36
# Cosines in fp32 of vectors that are equal are this near to 1.
ONE = 1e-5
# Smaller changes of a cosine are not worth a word.
PARTED = 1e-3

Row = dict[str, object]
OFF: tuple[dict[str, object], ...] = ({"kind": "set_position", "mode": "off"},)


def run(parameters: Context, bench: Bench) -> Result:
    """Holds a word against itself. Raises what `read_short` raises, InputError for a text without it."""
    loaded = bench.model(parameters.model)
    if parameters.layer >= loaded.config.stack.layers:
        choice = one_of(loaded.config.stack.layers)
        raise InputError(f"{parameters.model} has no layer {parameters.layer}: {choice}.")
    senses = [line.strip() for line in parameters.senses.splitlines() if line.strip()]
    if len(senses) > MAX_SENSES:
        raise InputError(
            f"There are {len(senses)} example sentences: give {MAX_SENSES} at most, each on its own line."
        )
    named = {"The first text": parameters.first, "The second text": parameters.second}
    named |= {f"Example {place}": text for place, text in enumerate(senses, start=1)}
    with torch.inference_mode():
        uses: list[Use] = []
        for where, text in named.items():
            bench.report(len(uses) / (len(named) + 2), f"reading {len(named)} texts", None)
            uses.append(use(loaded, parameters, text, where))
        first, second, *examples = uses
        looks = [_looks(one, name, parameters.layer) for one, name in ((first, "first"), (second, "second"))]
        nearest = [
            _nearest(one, examples, name) for one, name in ((first, "first"), (second, "second")) if examples
        ]
        parting = _similarity(first, second)
        series: list[Series] = [parting, *looks, *nearest]
        facts = _facts(parameters, first, second, examples)
        checks = [*_checks(loaded, parameters, first, second), _drawn(first, second, parting)]
    return Result(series, checks, facts, _notes(loaded, first, second), limits_of(loaded, "layer"))


def _others(a: Use, b: Use) -> Tensor:
    """Mean cosine between the word in one text and the other text's other words: a baseline, [L + 1]."""
    parts = [
        F.cosine_similarity(
            one.vector[:, None], other.vectors[:, [p for p in other.ordinary if p != other.place]], dim=2
        )
        for one, other in ((a, b), (b, a))
    ]  # [L + 1, W - 1]
    return torch.cat(parts, dim=1).mean(dim=1)


def _similarity(first: Use, second: Use) -> Chart:
    same, others = similarity(first, second), _others(first, second)
    layers = list(range(len(same)))
    word = first.words[first.place].label
    lines = [Line(f"“{word}” in both texts", layers, same)]
    if torch.isfinite(others).all():
        lines.append(Line(f"“{word}” and the other text's other words", layers, others))
    # Bars begin at 0: a curve of equal numbers would fill the picture with their rounding.
    kind: Literal["lines", "bars"] = "bars" if _as_one(same) else "lines"
    title = f"Cosine between “{word}” in the first text and in the second"
    return Chart("similarity", title, Axis("layers passed"), Axis("cosine"), lines, kind)


def _as_one(same: Tensor) -> bool:
    """Whether the two vectors point the same way at every layer."""
    return bool(((same - 1).abs() <= ONE).all())


def _looks(one: Use, name: str, layer: int) -> Heatmap:
    heads_here = one.ran.loaded.config.stack.attention.heads
    weights = one.weights[layer * heads_here :][:heads_here, one.place]  # [H, W]
    words = [f"{place} {word.label}" for place, word in enumerate(one.words)]
    heads = list(range(len(weights)))
    title = f"Where layer {layer} looks from “{one.words[one.place].label}”, {name} text"
    return Heatmap(f"looks-{name}", title, Axis("word"), Axis("head"), words, heads, weights, "weight")


def _nearest(one: Use, examples: Sequence[Use], name: str) -> Chart:
    layers = list(range(len(one.vectors)))
    lines = [
        Line(f"{number}. {_short(example.text)}", layers, similarity(one, example))
        for number, example in enumerate(examples, start=1)
    ]
    title = f"Cosine with the word in each example, {name} text"
    return Chart(f"senses-{name}", title, Axis("layers passed"), Axis("cosine"), lines)


def _short(text: str) -> str:
    return text if len(text) <= LEGEND else f"{text[:LEGEND].rstrip()}…"


def _facts(parameters: Context, first: Use, second: Use, examples: Sequence[Use]) -> Row:
    same, others = similarity(first, second), _others(first, second)
    least = int(same.argmin())
    return {
        "word": first.words[first.place].label,
        "model": parameters.model,
        "layer": parameters.layer,
        "start": same[0].item(),
        "end": same[-1].item(),
        "others": bool(torch.isfinite(others[-1])),
        "others_end": others[-1].item(),
        "parting": _parting(same, equal=first.text == second.text),
        "position_apart": first.ids == second.ids and same[0].item() < 1 - ONE,
        "as_given": _as_given(parameters),
        "layers": len(same) - 1,
        "least": {"value": same[least].item(), "layer": least},
        "senses": _senses(first, second, examples),
        "first": _side(first, examples),
        "second": _side(second, examples),
    }


def _parting(same: Tensor, *, equal: bool) -> str:
    """What becomes of the two vectors, as a sentence."""
    start, end = same[0].item(), same[-1].item()
    if _as_one(same):
        why = "both texts are the same" if equal else "nothing that reaches the word differs"
        return f"The two vectors are one and the same at every layer: {why}."
    if abs(end - start) <= PARTED:
        return "They end as near to each other as they began."
    return "They part." if end < start else "They end nearer to each other than they began."


def _as_given(parameters: Context) -> bool:
    """Whether the sentences are those that stand there at first."""
    given = Context()
    return all(
        getattr(parameters, name) == getattr(given, name) for name in ("word", "first", "second", "senses")
    )


def _side(one: Use, examples: Sequence[Use]) -> Row:
    strongest = _strongest(one)
    return {
        "text": one.text,
        "stack": next(iter(one.ran.trace.sites)).rpartition(".")[0],
        "query": one.words[one.place].tokens[0],
        "nearest": _closest(one, examples) if examples else None,
        "looks": strongest,
        "strongest": strongest[0] if strongest else None,
    }


def _senses(first: Use, second: Use, examples: Sequence[Use]) -> list[Row]:
    return [
        {
            "example": one.text,
            "first text": similarity(first, one)[-1].item(),
            "second text": similarity(second, one)[-1].item(),
        }
        for one in examples
    ]


def _closest(one: Use, examples: Sequence[Use]) -> Row:
    """The example whose word is most alike at the end, and from which layer on that stays so."""
    likeness = torch.stack([similarity(one, example) for example in examples])  # [senses, L + 1]
    best = likeness.argmax(dim=0).tolist()
    since = next(layer for layer in range(len(best)) if len(set(best[layer:])) == 1)
    begun = f"after {counted(since, 'layer')}" if since else "from the start"
    nearest = likeness[best[-1], -1].item()
    return {"text": examples[best[-1]].text, "cosine": nearest, "since": since, "begun": begun}


def _strongest(one: Use) -> list[Row]:
    """The words that some head looks at more than at others as far away, by how much more; each word once.

    The first word is left out: many heads put there what they have no use for.
    """
    heads = one.ran.loaded.config.stack.attention.heads
    rows: list[tuple[float, Row]] = []
    for place in one.ordinary[1:]:
        elsewhere = same_distance(one.weights, one.words, one.place, place)
        if place == one.place or elsewhere is None:
            continue
        weights = one.weights[:, one.place, place]  # [L · H]
        best = int((weights - elsewhere).argmax())
        row: Row = {
            "word": one.words[place].label,
            "head": f"L{best // heads}H{best % heads}",
            "weight": weights[best].item(),
            "at this distance elsewhere": elsewhere[best].item(),
        }
        rows.append((float((weights - elsewhere)[best]), row))
    return [row for _, row in sorted(rows, key=lambda row: -row[0])[:STRONGEST]]


def _drawn(first: Use, second: Use, chart: Chart) -> Check:
    """The last cosine as it is drawn, from single tokens of the stream, in fp64."""
    stack = first.ran.loaded.config.stack
    ends = []
    for one in (first, second):
        stream = one.ran.trace.resid[stack.name, stack.layers].double().cpu()  # [T, D]
        ends.append(sum((stream[token] for token in one.words[one.place].tokens), torch.zeros(())))
    a, b = ends
    cosine = (a @ b / (a @ a).sqrt() / (b @ b).sqrt()).item()
    drawn = torch.as_tensor(chart.lines[0].y)[-1].item()
    # Sums of some hundred products in fp32, of which a few are large.
    return Check("last cosine, from the stream's own tokens", cosine, drawn, 1e-4, about="similarity")


def _checks(loaded: LoadedModel, parameters: Context, first: Use, second: Use) -> list[Check]:
    """Before any layer, with positions off, the same token is the same vector whatever stands around it."""
    if first.ids != second.ids or isinstance(loaded.config.stack.position, NoPosition):
        return []
    bare = [use(loaded, parameters, one.text, "The text", OFF) for one in (first, second)]
    measured = similarity(*bare)[0].item()
    return [Check("cosine before the first layer, positions off", 1.0, measured, 1e-5, about="similarity")]


def _notes(loaded: LoadedModel, first: Use, second: Use) -> list[str]:
    notes = [
        note
        for one, name in ((first, "first"), (second, "second"))
        for note in repeated_note(one.words, one.place, f"the {name} text")
    ]
    if first.ids != second.ids:
        notes.append(
            "The word is not the same tokens in both texts (a capital, or the space before it): its vectors"
            " differ from the start."
        )
    for one, name in ((first, "first"), (second, "second")):
        after = len(one.words) - 1 - one.place
        if isinstance(loaded.config.stack.mask, Causal) and after:
            notes.append(
                f"In the {name} text this model's causal mask hides what stands after the word: "
                f"{counted(after, 'word or sign', 'words or signs')}."
            )
    return notes
