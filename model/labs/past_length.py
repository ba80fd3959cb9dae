"""Small models of each kind of position, trained on short texts, run on longer ones (Press et al. 2022)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.positions import PastLength
from model.labs.result import Axis, Chart, Check, Line, Relation, Result
from model.labs.small_models import SEEDS, VOCABULARY, Source, build, losses, schemes, train

BATCH, TRIED = 16, 256
# Positions that one point of the curve is a mean of.
WINDOW = 4
# Who has not learned this share of what there is to learn has little to lose, and is not judged.
LEARNED = 0.75
# Nats a token; with less to learn, in noise, a share of it says nothing.
LEAST = 0.1
# How much of what there is to learn is lost past the trained length: hardly any with ALiBi, much with what is
# added to the embedding. The direction is that of Press et al. 2022, figure 1; the bounds are an estimate for
# these small models.
EXPECTED: dict[str, tuple[Relation, float]] = {
    "ALiBi": ("<=", 0.1),
    "sinusoidal": (">=", 0.25),
    "learned table": (">=", 0.25),
}


def run(parameters: PastLength, bench: Bench) -> Result:
    """Loss by position of each kind, within the trained length and past it."""
    source, long = Source.of(parameters.seed, parameters.noise), parameters.trained * parameters.times
    generator = torch.Generator().manual_seed(parameters.seed + 1)
    tried = source.draw(TRIED, long + 1, generator)
    lessons = torch.split(source.draw(BATCH * parameters.steps, parameters.trained + 1, generator), BATCH)
    kinds, found = schemes(long), dict[str, Tensor]()
    for place, (name, position) in enumerate(kinds.items()):
        so_far = _result(found, source, parameters) if found else None

        def report(done: float, name: str = name, place: int = place, so_far: Result | None = so_far) -> None:
            bench.report((place + done) / len(kinds), f"training a small model: {name}", so_far)

        model = build(position, parameters.seed)
        train(model, lessons, report)
        found[name] = losses(model, tried)
    return _result(found, source, parameters)


def _result(found: dict[str, Tensor], source: Source, parameters: PastLength) -> Result:
    chart = _chart(found, source.entropy, parameters.trained)
    rows = [_row(name, loss, parameters.trained) for name, loss in found.items()]
    learnable = math.log(VOCABULARY) - source.entropy
    enough = math.log(VOCABULARY) - LEARNED * learnable
    unlearned = [
        row.name for row in rows if row.name in EXPECTED and (row.within >= enough or learnable < LEAST)
    ]
    notes = [
        "Models of two layers on an invented language show the effect; they do not stand for large ones."
    ]
    if unlearned:
        notes.append(
            f"Not trained far enough to be judged: {', '.join(unlearned)}. Take more steps or less noise."
        )
    judged = [row for row in rows if row.name not in unlearned]
    return Result([chart], _checks(judged, source.entropy), _facts(rows, source, parameters), notes)


@dataclass(frozen=True)
class Row:
    """Mean nats a token within the trained length, past it, and at the far end."""

    name: str
    within: float
    past: float
    end: float


def _row(name: str, loss: Tensor, trained: int) -> Row:
    past, end = loss[trained:], loss[-WINDOW * 2 :]
    return Row(name, loss[SEEDS - 1 : trained].mean().item(), past.mean().item(), end.mean().item())


def _chart(found: dict[str, Tensor], entropy: float, trained: int) -> Chart:
    lines = []
    for name, loss in found.items():
        means = loss.unfold(0, WINDOW, WINDOW).mean(-1)  # [T / WINDOW]
        lines.append(Line(name, torch.arange(len(means)) * WINDOW + (WINDOW - 1) / 2, means))
    ends = [0.0, float(len(next(iter(found.values()))) - 1)]
    lines.append(Line("the best there can be", ends, [entropy] * 2, "theory"))
    lines.append(
        Line("end of the trained length", [float(trained)] * 2, [0.0, math.log(VOCABULARY)], "theory")
    )
    title = f"Loss by position, after training on {trained} tokens"
    return Chart("loss", title, Axis("position"), Axis("loss, in nats a token"), lines)


def _checks(rows: list[Row], entropy: float) -> list[Check]:
    """What comes back of the loss past the length, as a share of what there was to learn."""
    learnable = math.log(VOCABULARY) - entropy
    checks = []
    for row in rows:
        if row.name in EXPECTED:
            relation, expected = EXPECTED[row.name]
            name = f"{row.name}: share of what there is to learn that is lost past the length"
            lost = (row.past - row.within) / learnable
            checks.append(Check(name, expected, lost, relation=relation, origin="estimate"))
    return checks


def _facts(rows: list[Row], source: Source, parameters: PastLength) -> dict[str, object]:
    best = min(rows, key=lambda row: row.past)
    worst = max(rows, key=lambda row: row.past)
    return {
        "trained": parameters.trained, "longest": parameters.trained * parameters.times,
        "entropy": source.entropy, "guessing": math.log(VOCABULARY),
        "best": best.name, "best_past": best.past, "worst": worst.name, "worst_past": worst.past,
        "table": [
            {"positions": row.name, "loss within": row.within, "loss past": row.past, "perplexity within":
             math.exp(row.within), "perplexity past": math.exp(row.past)}
            for row in rows
        ],
    }  # fmt: skip
