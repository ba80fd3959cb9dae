"""Several heads in one layer: subspaces, concatenation, W_O (Vaswani et al. 2017, section 3.2.2)."""

from collections.abc import Sequence

import torch

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.head_checks import layer_checks
from model.labs.head_layer import HeadLayer
from model.labs.parameters.heads import Heads, Projection
from model.labs.reading import Ran, limits_of, run_ids
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result, Series
from model.labs.subspaces import overlaps, pieces
from model.labs.word_links import read_short
from model.labs.words import one_of

MAX_TOKENS = 128
THUMBNAIL = 24
# Sums of as many products as a model is wide, in another order: some hundred roundings of the largest term.
ROUNDINGS = 256
# Patterns that differ by less are one and the same, but for rounding.
ALIKE = 1e-5

Facts = dict[str, object]


def run(parameters: Heads, bench: Bench) -> Result:
    """One layer's heads. Raises what `read_short` raises, InputError for a layer or head not there."""
    loaded = bench.model(parameters.model)
    stack = loaded.config.stack
    encoded = read_short(loaded, parameters.model, parameters.text, MAX_TOKENS)
    _refuse("layer", parameters.layer, stack.layers, parameters.model)
    _refuse("head", parameters.head, stack.attention.heads, parameters.model)
    ran = Ran(loaded, encoded, run_ids(loaded, encoded, record=("head_out", "attn_out")))
    with torch.inference_mode():
        layers = [HeadLayer(ran, index) for index in range(stack.layers)]
        layer = layers[parameters.layer]
        series: list[Series] = [
            _pattern(layer, parameters.head),
            _lengths(layer),
            _all_lengths(layers),
            _rebuilt(layer),
            _overlaps(layer, parameters.projection),
            _mean_overlaps(layer, parameters.projection),
        ]
        facts = {**_asked(layer, parameters), **_sizes(layer), **_measured(layer, parameters)}
        checks = [*_checks(layer), *layer_checks(layer, parameters, {one.id: one for one in series})]
    return Result(series, checks, facts, _notes(layer), limits_of(loaded, "layer", "head"))


def _refuse(what: str, asked: int, there: int, model_id: str) -> None:
    if asked >= there:
        raise InputError(f"{model_id} has no {what} {asked}: {one_of(there)}.", **{what: asked})


def _pattern(layer: HeadLayer, head: int) -> Heatmap:
    tokens = [f"{place} {label}" for place, label in enumerate(layer.ran.labels)]
    title, values = f"Where L{layer.index}H{head} looks", layer.patterns[head]  # [T, T]
    return Heatmap("pattern", title, Axis("key"), Axis("query"), tokens, tokens, values, "weight")


def _lengths(layer: HeadLayer) -> Chart:
    means = layer.lengths.mean(dim=1)  # [H]
    line = Line("mean over tokens", list(range(len(means))), means)
    title = f"Mean length of what each head of layer {layer.index} adds"
    return Chart("lengths", title, Axis("head"), Axis("length"), [line], "bars")


def _all_lengths(layers: Sequence[HeadLayer]) -> Heatmap:
    means = torch.stack([layer.lengths.mean(dim=1) for layer in layers])  # [L, H]
    rows, columns = list(range(means.shape[0])), list(range(means.shape[1]))
    title = "Mean length of what every head adds"
    return Heatmap("all-lengths", title, Axis("head"), Axis("layer"), columns, rows, means, "length")


def _rebuilt(layer: HeadLayer) -> Chart:
    """Heads added one by one, the longest first, and how much of the layer's output is still missing."""
    order = layer.lengths.mean(dim=1).argsort(descending=True)  # [H]
    sums = [torch.zeros_like(layer.out), *layer.contributions[order].cumsum(dim=0)]
    nothing = "the bias alone" if layer.attention.config.out_bias else "no head"
    names = [nothing, *(f"+ H{head}" for head in order.tolist())]
    line = Line("missing", names, [layer.missing(total) for total in sums])
    title = "What is missing of the layer's output, heads added one by one"
    return Chart(
        "rebuilt", title, Axis("added, the longest first"), Axis("share of its length"), [line], "bars"
    )


def _overlaps(layer: HeadLayer, projection: Projection) -> Heatmap:
    values = overlaps(pieces(layer.attention, projection))  # [H, H]
    axis = Axis("key/value head" if projection in ("keys", "values") else "head")
    heads = list(range(len(values)))
    title = f"Overlap of the subspaces of {projection}, layer {layer.index}"
    return Heatmap("overlap", title, axis, axis, heads, heads, values, "overlap")


def _mean_overlaps(layer: HeadLayer, projection: Projection) -> Chart:
    """Each head's mean overlap with the others, beside what random subspaces have: K/D."""
    values = overlaps(pieces(layer.attention, projection))  # [H, H]
    heads = list(range(len(values)))
    others = max(1, len(values) - 1)
    means = (values.sum(dim=1) - values.diagonal()) / others  # [H]
    random = _random_overlap(layer)
    lines = [
        Line("mean overlap with the others", heads, means),
        Line("random subspaces, d_k/D", heads, [random] * len(heads), "theory"),
    ]
    title = f"Mean overlap of each head's {projection} with the others, layer {layer.index}"
    axis = Axis("key/value head" if projection in ("keys", "values") else "head")
    return Chart("overlap-mean", title, axis, Axis("overlap"), lines, "bars")


def _random_overlap(layer: HeadLayer) -> float:
    return min(1.0, layer.attention.config.head_width / layer.out.shape[1])


def _checks(layer: HeadLayer) -> list[Check]:
    eps = torch.finfo(layer.attention.o.weight.dtype).eps
    rounding = ROUNDINGS * eps * layer.out.abs().max().item()
    name = "largest difference between the sum of all heads and the layer's output"
    return [Check(name, 0.0, layer.difference(), rounding, about="rebuilt")]


def _asked(layer: HeadLayer, parameters: Heads) -> Facts:
    return {
        "text": parameters.text,
        "model": parameters.model,
        "site": layer.site,
        "later": layer.index + 1 < layer.ran.loaded.config.stack.layers,
        "stack": layer.site.rpartition(".")[0],
        "layer": layer.index,
        "head": parameters.head,
        "name": f"L{layer.index}H{parameters.head}",
    }


def _sizes(layer: HeadLayer) -> Facts:
    config, (tokens, width) = layer.attention.config, layer.out.shape
    heads, groups, inner = config.heads, config.kv_heads, config.head_width
    steps = {
        "tokens into the layer": f"{tokens} × {width}",
        "queries": f"{heads} heads × {tokens} × {inner}",
        "keys and values": f"{groups} heads × {tokens} × {inner}",
        "patterns": f"{heads} heads × {tokens} × {tokens}",
        "mixed values": f"{heads} heads × {tokens} × {inner}",
        "side by side": f"{tokens} × {heads * inner}",
        "W^O": f"{heads * inner} × {width}",
        "output of the layer's attention": f"{tokens} × {width}",
    }
    return {
        "heads": heads,
        "kv_heads": groups,
        "head_width": inner,
        "width": width,
        "concatenated": heads * inner,
        "tokens": tokens,
        "parameters": sum(parameter.numel() for parameter in layer.attention.parameters()),
        "steps": [{"step": step, "shape": shape} for step, shape in steps.items()],
    }


def _measured(layer: HeadLayer, parameters: Heads) -> Facts:
    means = layer.lengths.mean(dim=1)  # [H]
    apart = (layer.patterns - layer.patterns.mean(dim=0)).abs().sum(dim=2).mean() / 2
    thumbnails: list[list[list[float]]] = layer.thumbnails(THUMBNAIL).tolist()
    return {
        "difference": layer.difference(),
        "longest": {"name": f"H{int(means.argmax())}", "length": means.max().item()},
        "shortest": {"name": f"H{int(means.argmin())}", "length": means.min().item()},
        "one_pattern": {
            "moved": layer.missing(layer.with_one_pattern()),
            "apart": apart.item(),
            "differ": apart.item() > ALIKE,
        },
        "subspaces": _subspaces(layer, parameters.projection),
        "thumbnails": [[[round(cell, 3) for cell in row] for row in head] for head in thumbnails],
    }


def _subspaces(layer: HeadLayer, projection: Projection) -> Facts:
    """How much subspaces overlap, and what random ones of their size would: K/D on average."""
    values = overlaps(pieces(layer.attention, projection))  # [H, H]
    others = values.masked_fill(torch.eye(len(values), dtype=torch.bool), -1.0)  # [H, H]
    single = len(values) == 1
    pair = divmod(int(others.argmax()), len(values))
    return {
        "of": projection,
        "mean": None if single else others[others >= 0].mean().item(),
        "random": _random_overlap(layer),
        "closest": "no two" if single else f"H{min(pair)} and H{max(pair)}",
        "closest_overlap": None if single else others.max().item(),
    }


def _notes(layer: HeadLayer) -> list[str]:
    notes = []
    if layer.ran.trace.tokens > THUMBNAIL:
        side = f"{THUMBNAIL} × {THUMBNAIL} cells"
        notes.append(f"The small pictures have {side}, each with the largest weight that falls into it.")
    if layer.norm_follows:
        notes.append("In this model a norm follows the sum before the stream: they are compared after it.")
    return notes
