"""Where the heads of a real model sit on the saturation curve, and what another scale does to them."""

import math
from itertools import pairwise

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.head_scores import Heads, measure, multiplied, open_scores, row_measures
from model.labs.one_head import Where, relative
from model.labs.parameters.scaling import RealScores
from model.labs.reading import Ran, limits_of, read, run_ids
from model.labs.real_checks import check_places, check_scores, check_spreads
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result
from model.labs.softmax_measures import entropy, jacobian_norm
from model.labs.words import counted
from model.rules import scale_in_words
from model.scores import Stage

MOST_TOKENS = 256
BINS, CURVE_ROWS = 60, 400
SPREADS = [10 ** (power / 20) for power in range(-20, 41)]
TEMPERATURES = [10 ** (power / 8) for power in range(-16, 17)]
OWN: dict[str, object] = {"kind": "set_scale", "rule": "own", "times": 1.0}
SHOWN: tuple[Stage, Stage] = ("raw", "scaled")
Multiplied = list[tuple[Tensor, Tensor]]


def run(parameters: RealScores, bench: Bench) -> Result:
    """All heads on one text. Raises InputError for a head that is not there or a text too long or short."""
    own = _run(parameters, bench)
    where = Where(parameters.layer, parameters.head)
    layers = len(own.trace.sites)
    before = measure(
        own, lambda done: bench.report(0.1 + 0.4 * done / layers, f"layer {done}, own scale", None)
    )
    changed, after = own, before
    step: dict[str, object] = {"kind": "set_scale", "rule": parameters.rule, "times": parameters.times}
    if step != OWN:
        changed = Ran(own.loaded, own.encoded, run_ids(own.loaded, own.encoded, [step]))
        after = measure(changed, lambda done: bench.report(0.5 + 0.4 * done / layers, f"layer {done}", None))
    heated = [multiplied(where.of(changed), where, times) for times in TEMPERATURES]
    scores, matrices = _histogram(changed, where), _matrices(after)
    saturation, heat = _saturation(changed, where, after), _heat(heated, where)
    return Result(
        [scores, *matrices, saturation, heat],
        [
            *check_spreads(changed, where, matrices),
            *check_scores(changed, where, scores),
            *check_places(changed, where, saturation, heat),
            *_checks(changed, where, heated),
        ],
        _facts(parameters, own, changed, before, after, heat),
        _notes(own),
        limits_of(own.loaded, "layer", "head"),
    )


def _run(parameters: RealScores, bench: Bench) -> Ran:
    loaded = bench.model(parameters.model)
    Where(parameters.layer, parameters.head).check(loaded, parameters.model)
    encoded = read(loaded, parameters.model, parameters.text, MOST_TOKENS)
    if len(encoded.ids) < 2:
        raise InputError(
            f"The text has {counted(len(encoded.ids), 'token')}, whose one score has no spread: write a "
            "longer one."
        )
    bench.report(0.05, counted(len(encoded.ids), "token"), None)
    return Ran(loaded, encoded, run_ids(loaded, encoded))


def _matrices(heads: Heads) -> list[Heatmap]:
    layers, count = heads.raw.shape
    rows, columns = [float(layer) for layer in range(layers)], [float(head) for head in range(count)]

    def matrix(name: str, which: str, values: Tensor) -> Heatmap:
        title = f"Spread of {which} scores within a row, head by head"
        return Heatmap(name, title, Axis("head"), Axis("layer"), columns, rows, values, "standard deviation")

    return [matrix("spread", "raw", heads.raw), matrix("scaled_spread", "scaled", heads.scaled)]


def _histogram(ran: Ran, where: Where) -> Chart:
    lines = []
    for stage in SHOWN:
        scores = open_scores(ran, where, stage)  # [pairs]
        reach = max(scores.abs().max().item() * 1.0001, 1e-6)
        edges = torch.linspace(-reach, reach, BINS + 1, dtype=torch.float64)  # [E]
        counts, _ = torch.histogram(scores, bins=edges)
        lines.append(Line(f"{stage} scores", (edges[1:] + edges[:-1]) / 2, counts / len(scores)))
    title = f"Scores of L{where.layer}H{where.head}, raw and scaled"
    return Chart("scores", title, Axis("score"), Axis("share of the pairs in a bin"), lines)


def _saturation(ran: Ran, where: Where, heads: Heads) -> Chart:
    """Each head by the spread of its scaled scores; beside them normal scores of every spread."""
    keys = _usual_keys(ran)
    z = torch.randn(
        CURVE_ROWS, keys, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )  # [N, S]
    curve = [entropy((spread * z).softmax(dim=-1)).mean().item() / math.log(keys) for spread in SPREADS]
    here = where.layer, where.head
    lines = [
        Line("all heads", heads.scaled.flatten(), heads.entropy.flatten()),
        Line(f"L{where.layer}H{where.head}", [heads.scaled[here].item()], [heads.entropy[here].item()]),
        Line(f"normal scores over {counted(keys, 'key')}", SPREADS, curve, "theory"),
    ]
    title = "Where each head sits: spread of its scaled scores against entropy"
    x = Axis("standard deviation of the scaled scores of a row", log=True)
    return Chart("saturation", title, x, Axis("entropy, as a share of the most possible"), lines, "points")


def _usual_keys(ran: Ran) -> int:
    """How many keys a query sees, in the median over the text, at least 2."""
    site = next(iter(ran.trace.sites.values()))
    masked = site.attention(range(1), range(site.queries), "masked")[0]  # [T, S]
    return max(2, int(torch.isfinite(masked).sum(dim=-1).median()))


def _heat(heated: Multiplied, where: Where) -> Chart:
    """The chosen head's softmax with its scores multiplied by 1/100 … 100: q and k stay as they ran."""
    measures = [row_measures(weights, is_open) for weights, is_open in heated]
    # A row of one open key never answers: it has no choice.
    jacobians = [
        jacobian_norm(weights)[is_open.sum(dim=-1) > 1].median().item() for weights, is_open in heated
    ]
    title = f"L{where.layer}H{where.head} with its scores multiplied"
    lines = [
        Line("entropy, share of the most possible", TEMPERATURES, [share.item() for share, _ in measures]),
        Line("largest weight", TEMPERATURES, [largest.item() for _, largest in measures]),
        Line("how far weights answer (size of the Jacobian), median", TEMPERATURES, jacobians),
    ]
    x = Axis("factor on the scores (1 / temperature)", log=True)
    return Chart("temperature", title, x, Axis("value"), lines)


def _checks(ran: Ran, where: Where, heated: Multiplied) -> list[Check]:
    sums = max((weights.sum(dim=-1) - 1).abs().max().item() for weights, _ in heated)
    checks = [Check("rows that do not sum to 1, largest gap", 0.0, sums, 1e-9, about="temperature")]
    # d entropy / d factor = -factor · Var(score) under the weights: without a bias it can only fall.
    entropies = [entropy(weights).mean().item() for weights, _ in heated]
    rise = max(after - before for before, after in pairwise(entropies))
    if where.of(ran).rule.bias is None:
        what = "largest rise of entropy from factor to factor"
        checks.append(Check(what, 0.0, rise, 1e-9, "<=", about="temperature"))
    return checks


def _facts(
    parameters: RealScores, own: Ran, changed: Ran, before: Heads, after: Heads, heat: Chart
) -> dict[str, object]:
    where, here = Where(parameters.layer, parameters.head), (parameters.layer, parameters.head)
    width = own.loaded.config.stack.attention.head_width
    scales = [where.of(ran).rule.scales[where.head] for ran in (own, changed)]
    moved = relative(changed.trace.final - own.trace.final, own.trace.final)  # [T]
    return {
        "model": parameters.model,
        "text": parameters.text,
        "tokens": len(own.labels),
        "head_name": f"L{where.layer}H{where.head}",
        "layer": where.layer,
        "head": where.head,
        "layers": before.raw.shape[0],
        "heads": before.raw.shape[1],
        "all_heads": before.raw.numel(),
        "d_k": width,
        "root_d_k": math.sqrt(width),
        "own_scale": scale_in_words(scales[0], width),
        "scale": scale_in_words(scales[1], width),
        "raw_spread": after.raw[here].item(),
        "scaled_spread": after.scaled[here].item(),
        "entropy": after.entropy[here].item(),
        "largest": after.largest[here].item(),
        "own_entropy": before.entropy[here].item(),
        "own_largest": before.largest[here].item(),
        "all_own_entropy": before.entropy.mean().item(),
        "all_entropy": after.entropy.mean().item(),
        "all_own_largest": before.largest.mean().item(),
        "all_largest": after.largest.mean().item(),
        "least_spread": before.raw.min().item(),
        "most_spread": before.raw.max().item(),
        "moved": moved.mean().item(),
        "changed": changed is not own,
        "unscaled": parameters.rule == "none",
        "answers_most_at": _peak(heat),
    }


def _peak(heat: Chart) -> float | None:
    """The factor drawn at which the weights answer most to the scores; None where they never do."""
    line = torch.as_tensor(heat.lines[2].y)
    return TEMPERATURES[int(line.argmax())] if line.max() > 0 else None


def _notes(own: Ran) -> list[str]:
    notes = ["Spreads are within a row: what all keys of a query have in common cancels in the softmax."]
    if any(site.rule.bias is not None for site in own.trace.sites.values()):
        notes.append(
            "A position bias is added after scaling: entropy and weights include it, spreads do not."
        )
    return notes
