"""Scaling laws (Kaplan et al. 2020, equations 1.1 to 1.3): loss against size, data and compute."""

import math
from dataclasses import dataclass
from typing import get_args

import torch

from model.labs.bench import Bench
from model.labs.families import card
from model.labs.parameters.families import DecoderOnly, ScalingLaws
from model.labs.published import Law, published
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import power

POINTS = 64
# The curves are drawn from 1, or below one's own model, up to where a law says 1 nat, or to one's own.
FIRST = 1.0
# A PF-day: 10^15 operations a second for a day (Kaplan et al. 2020, section 1.3).
PF_DAY = 1e15 * 24 * 3600
# A forward and its backward take about 6 operations a parameter and token (ibid., section 2.1).
OPERATIONS = 6


@dataclass(frozen=True)
class Place:
    """A law, where one's own model stands on it, and what its picture is called."""

    id: str
    title: str
    law: Law
    own: float

    @property
    def facts(self) -> dict[str, object]:
        """What the law says there."""
        loss, halved = self.law.loss(self.own), 1 - self.law.loss(2 * self.own) / self.law.loss(self.own)
        return {
            "x": self.own,
            "loss": loss,
            "perplexity": math.exp(loss),
            "doubling_saves": halved,
            "exponent": self.law.exponent,
            "constant": self.law.constant,
        }

    def chart(self, *more: Line) -> Chart:
        """The law as a line, one's own model as a point."""
        first = math.log10(min(FIRST, self.own / 100))
        last = math.log10(max(self.law.constant, self.own))
        x = torch.logspace(first, last, POINTS, dtype=torch.float64).tolist()
        lines = [
            Line(f"L({self.law.symbol})", x, [self.law.loss(value) for value in x], "theory"),
            Line("your model", [self.own], [self.law.loss(self.own)], "theory"),
        ]
        if self.law.tested is not None:
            trained = [self.law.loss(end) for end in self.law.tested]
            lines.append(Line("ends of what was trained", self.law.tested, trained, "published"))
        lines += more
        return Chart(
            self.id, self.title, Axis(self.law.unit, log=True), Axis("loss (nats a token)", log=True), lines
        )

    def check(self) -> Check:
        """The slope of the drawn line on logarithmic axes, by least squares, against the exponent."""
        line = self.chart().lines[0]
        x, y = (torch.tensor(list(values), dtype=torch.float64).log() for values in (line.x, line.y))
        slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
        name = f"slope of L({self.law.symbol}) on logarithmic axes"
        return Check(name, -self.law.exponent, slope.item(), 1e-9, origin="published", about=self.id)

    def notes(self) -> list[str]:
        """Where the law is stretched beyond what it was fitted on."""
        tested = self.law.tested
        if tested is None or tested[0] <= self.own <= tested[1]:
            return []
        low, high = tested
        fitted = f"The law was fitted from {power(low)} to {power(high)} {self.law.unit}"
        return [f"{fitted}: at {power(self.own)} it is a guess."]


def run(parameters: ScalingLaws, _bench: Bench) -> Result:
    """The three laws: published language models on the first, one's own on all."""
    laws, models = published().scaling_laws, published().models
    size, tokens = parameters.parameters, parameters.tokens
    compute = OPERATIONS * size * tokens / PF_DAY
    places = (
        Place("size", "Loss by size, were data and compute unlimited", laws.parameters, size),
        Place("data", "Loss by data, were size unlimited", laws.tokens, tokens),
        Place("compute", "Loss by compute, were it spent at its best", laws.compute, compute),
    )
    sizes = {name: float(card(name, 1, "float32").without_embeddings) for name in get_args(DecoderOnly)}
    known = dict(sorted(sizes.items(), key=lambda found: found[1]))
    predicted = [laws.parameters.loss(number) for number in known.values()]
    line = Line("published models, as the law predicts", list(known.values()), predicted, "estimate")
    charts = [places[0].chart(line), places[1].chart(), places[2].chart()]
    table = [
        {"model": models[name].title, "parameters without embeddings": number, "loss predicted": loss}
        for (name, number), loss in zip(known.items(), predicted, strict=True)
    ]
    facts = {"paper": laws.paper, "models": table, **{place.id: place.facts for place in places}}
    notes = [note for place in places for note in place.notes()]
    return Result(charts, [place.check() for place in places], facts, notes)
