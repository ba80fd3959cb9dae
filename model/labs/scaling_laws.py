"""Scaling laws (Kaplan et al. 2020, equations 1.1 to 1.3): loss against size, data and compute."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import torch

from model.labs.bench import Bench
from model.labs.families import card
from model.labs.parameters.families import DecoderOnly, ScalingLaws
from model.labs.published import Law, published
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import listed, power

POINTS = 64
# The curves begin at 1 or below, and end where a law says 1 nat or beyond.
FIRST = 1.0
# A PF-day: 10^15 operations a second for a day (Kaplan et al. 2020, section 1.3).
PF_DAY = 1e15 * 24 * 3600
# A forward and its backward take about 6 operations a parameter and token (ibid., section 2.1).
OPERATIONS = 6
FITS_DIFFER = 0.05
INSIDE = "within what was trained"


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
            "guess": None if self.law.fitted(self.own) else "a guess, beyond what was trained",
            "exponent": self.law.exponent,
            "constant": self.law.constant,
        }

    def chart(self, models: Mapping[str, float] | None = None) -> Chart:
        """The law as a line, dashed where nothing was trained, one's own model and others as points."""
        lines = [
            Line(f"L({self.law.symbol})", *self._line(*self.law.tested), "theory"),
            *self._beyond(),
            Line("ends of what was trained", *self._at(self.law.tested), "published"),
            Line(self._called("your model", [self.own]), *self._at([self.own]), "theory"),
        ]
        sizes = list((models or {}).values())
        inside = [size for size in sizes if self.law.fitted(size)]
        outside = [size for size in sizes if size not in inside]
        lines += [
            Line(self._called("published models", named), *self._at(named), "estimate")
            for named in (inside, outside)
            if named
        ]
        x, y = Axis(self.law.unit, log=True), Axis("loss (nats a token)", log=True)
        return Chart(self.id, self.title, x, y, lines)

    def _called(self, name: str, places: Sequence[float]) -> str:
        return name if self.law.fitted(places[0]) else f"{name}, beyond what was trained"

    def _at(self, places: Sequence[float]) -> tuple[list[float], list[float]]:
        return list(places), [self.law.loss(place) for place in places]

    def _line(self, first: float, last: float) -> tuple[list[float], list[float]]:
        places = torch.logspace(math.log10(first), math.log10(last), POINTS, dtype=torch.float64)
        return self._at(places.tolist())

    def _beyond(self) -> Iterator[Line]:
        """The law carried on below and above what was trained: as far as one's own model, or to 1 nat."""
        low, high = self.law.tested
        first, last = min(FIRST, low / 100, self.own / 100), max(self.law.constant, self.own)
        yield Line("carried on below", *self._line(first, low), "estimate")
        yield Line("carried on above", *self._line(high, last), "estimate")

    def check(self) -> Check:
        """The drawn line amid what was trained, against another published fit of the same thing."""
        again, line = self.law.again, self.chart().lines[0]
        x, y = min(zip(line.x, line.y, strict=True), key=lambda drawn: abs(math.log(drawn[0] / again.at)))
        name = f"L({self.law.symbol}) at {power(x)}, by {again.source}"
        # Two fits of such losses differ by some percent: other runs, another way to fit.
        expected = again.loss(x)
        return Check(name, expected, y, FITS_DIFFER * expected, origin="published", about=self.id)

    def notes(self) -> list[str]:
        """Where the law is stretched beyond what it was fitted on."""
        if self.law.fitted(self.own):
            return []
        low, high = self.law.tested
        fitted = f"The law was fitted from about {_said(low)} to {_said(high)} {self.law.unit}"
        return [f"{fitted}: at {_said(self.own)} it is a guess."]


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
    charts = [places[0].chart(known), places[1].chart(), places[2].chart()]
    table = [_row(models[name].title, number, laws.parameters) for name, number in known.items()]
    facts = {"paper": laws.paper, "models": table, **{place.id: place.facts for place in places}}
    notes = [note for place in places for note in place.notes()]
    beyond = [row["model"] for row in table if row["this is"] != INSIDE]
    if beyond:
        names = listed([str(name) for name in beyond])
        notes.append(f"Beyond the {power(laws.parameters.tested[1])} parameters that were trained: {names}.")
    return Result(charts, [place.check() for place in places], facts, notes)


def _said(number: float) -> str:
    return f"{number:,.4g}" if 1 <= number < 1e5 else power(number)


def _row(title: str, size: float, law: Law) -> dict[str, object]:
    where = INSIDE if law.fitted(size) else f"a guess, {size / law.tested[1]:,.3g} times the largest trained"
    return {
        "model": title,
        "parameters without embeddings": size,
        "loss predicted": law.loss(size),
        "this is": where,
    }
