"""Small models of each kind of position, trained on short texts, run on longer ones (Press et al. 2022)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.positions import PastLength
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.small_models import SEEDS, VOCABULARY, Source, build, losses, schemes, train
from model.labs.words import listed

BATCH, TRIED = 16, 256
# Positions that one point of the curve is a mean of.
WINDOW = 4
# Who has not learned this share of what there is to learn has little to lose, and is not judged.
LEARNED = 0.75
# Nats a token; with less to learn, in noise, a share of it says nothing.
LEAST = 0.1
# By Press et al. 2022, figure 1, what is added to the embedding loses past the length, and ALiBi does not.
HOLDS, BREAK = "ALiBi", ("sinusoidal", "learned table")
# A mean of hundreds of texts is off by so many standard errors in one of 15,000 tries.
ERRORS = 4


@dataclass(frozen=True)
class Tried:
    """Nats of every token of the texts that all models read, [N, T]; `least` is what nobody goes below."""

    found: dict[str, Tensor]
    least: Tensor
    kinds: list[str]
    source: Source
    parameters: PastLength

    @property
    def complete(self) -> bool:
        """Whether every model was trained."""
        return len(self.found) == len(self.kinds)

    def within(self, name: str) -> float:
        """Mean nats a token within the trained length."""
        return self.found[name][:, SEEDS - 1 : self.parameters.trained].mean().item()

    def past(self, name: str) -> Tensor:
        """Mean nats a token past the trained length, of each text: [N]."""
        return self.found[name][:, self.parameters.trained :].mean(1)  # [N]

    @property
    def unlearned(self) -> list[str]:
        """Who of those that are compared has not learned enough to have something to lose."""
        learnable = math.log(VOCABULARY) - self.source.entropy
        enough = math.log(VOCABULARY) - LEARNED * learnable
        compared = [name for name in self.kinds if name in self.found and name in (HOLDS, *BREAK)]
        return [name for name in compared if self.within(name) >= enough or learnable < LEAST]


def run(parameters: PastLength, bench: Bench) -> Result:
    """Loss by position of each kind, within the trained length and past it."""
    source, long = Source.of(parameters.seed, parameters.noise), parameters.trained * parameters.times
    generator = torch.Generator().manual_seed(parameters.seed + 1)
    texts = source.draw(TRIED, long + 1, generator)
    lessons = torch.split(source.draw(BATCH * parameters.steps, parameters.trained + 1, generator), BATCH)
    kinds, found = schemes(long), dict[str, Tensor]()
    tried = Tried(found, source.least(texts), list(kinds), source, parameters)
    for place, (name, position) in enumerate(kinds.items()):
        so_far = _result(tried) if found else None

        def report(done: float, name: str = name, place: int = place, so_far: Result | None = so_far) -> None:
            bench.report((place + done) / len(kinds), f"training a small model: {name}", so_far)

        model = build(position, parameters.seed)
        train(model, lessons, report)
        found[name] = losses(model, texts)
    return _result(tried)


def _result(tried: Tried) -> Result:
    notes = [
        "Models of two layers on an invented language show the effect; they do not stand for large ones."
    ]
    if tried.unlearned:
        notes.append(
            f"Not trained far enough to be judged: {listed(tried.unlearned)}. Take more steps or less noise."
        )
    return Result([_chart(tried)], _checks(tried), _facts(tried), notes)


def _chart(tried: Tried) -> Chart:
    """Every kind has its line from the beginning, so that each keeps its colour while others are trained."""
    best = _windows(tried.least)  # [T / WINDOW]
    middle = torch.arange(len(best)) * WINDOW + (WINDOW - 1) / 2
    lines = [
        Line(name, middle, _windows(tried.found[name]) if name in tried.found else [None] * len(best))
        for name in tried.kinds
    ]
    lines.append(Line("the best there can be on these texts", middle, best, "theory"))
    end = [float(tried.parameters.trained)] * 2
    lines.append(Line("end of the trained length", end, [0.0, math.log(VOCABULARY)], "theory"))
    title = f"Loss by position, after training on {tried.parameters.trained} tokens"
    return Chart("loss", title, Axis("position"), Axis("loss, in nats a token"), lines)


def _windows(nats: Tensor) -> Tensor:
    """Means of [N, T] over texts and over WINDOW positions, [T / WINDOW]."""
    return nats.mean(0).unfold(0, WINDOW, WINDOW).mean(-1)


def _checks(tried: Tried) -> list[Check]:
    """Nobody does better than who knows the rule; what is added to the embedding loses more than ALiBi."""
    checks = []
    for name in tried.found:
        over = (tried.found[name] - tried.least).mean(1)  # [N]
        checks.append(
            Check(
                f"{name}: loss less the best there can be",
                0.0,
                over.mean().item(),
                ERRORS * _error(over),
                ">=",
            )
        )
    judged = [name for name in BREAK if name in tried.found and HOLDS in tried.found]
    for name in judged if not tried.unlearned else []:
        more = tried.past(name) - tried.past(HOLDS)  # [N]
        checks.append(
            Check(f"{name}: loss past the length less that of {HOLDS}, against {ERRORS} standard errors",
                  ERRORS * _error(more), more.mean().item(), relation=">=", origin="estimate")
        )  # fmt: skip
    return checks


def _error(values: Tensor) -> float:
    """Standard error of the mean of values [N], one a text."""
    return (values.std() / math.sqrt(len(values))).item()


def _facts(tried: Tried) -> dict[str, object]:
    parameters, past = tried.parameters, {name: tried.past(name).mean().item() for name in tried.found}
    best, worst = min(past, key=past.__getitem__), max(past, key=past.__getitem__)
    return {
        "trained": parameters.trained, "longest": parameters.trained * parameters.times,
        "complete": tried.complete, "models": len(tried.found), "kinds": len(tried.kinds),
        "judged": tried.complete and not tried.unlearned,
        "entropy": tried.source.entropy, "guessing": math.log(VOCABULARY),
        "least": tried.least[:, parameters.trained :].mean(),
        "best": best, "best_past": past[best], "worst": worst, "worst_past": past[worst],
        "table": [
            {"positions": name, "loss within": tried.within(name), "loss past": past[name],
             "± standard error": _error(tried.past(name)), "perplexity within": math.exp(tried.within(name)),
             "perplexity past": math.exp(past[name])}
            for name in tried.found
        ],
    }  # fmt: skip
