"""An architecture's card in pictures: parameters by part, and what each length costs."""

from model.labs.cards import Card
from model.labs.costs import Lengths
from model.labs.result import Axis, Chart, Line

# Lengths of the curves: powers of two up to the longest that a lab may be asked for.
LONGEST = 20
MB, GFLOP = 1e6, 1e9


def charts(card: Card) -> list[Chart]:
    """Parameters by part, and what a length costs."""
    lengths = sorted({2**n for n in range(LONGEST + 1)} | {card.tokens})
    at = [Lengths.of(card.config, tokens) for tokens in lengths]
    return [_parts(card), _memory(card, at), _operations(card, at)]


def _parts(card: Card) -> Chart:
    line = Line(card.title, list(card.parts), [float(number) for number in card.parts.values()])
    title = f"Parameters of {card.title} by part"
    return Chart("parts", title, Axis("part"), Axis("parameters"), [line], kind="bars")


def _memory(card: Card, at: list[Lengths]) -> Chart:
    tokens, found = [float(one.tokens) for one in at], [card.costs_at(one) for one in at]
    lines = [
        Line("attention of all heads, written out", tokens, [one.attention / MB for one in found]),
        # A logarithmic axis has no place for the 0 of a model that keeps nothing.
        Line("keys and values kept", tokens, [one.cache / MB or None for one in found]),
        Line("weights", tokens, [one.weights / MB for one in found]),
    ]
    title = f"Memory of {card.title} by length, in {card.precision}"
    return Chart("memory", title, Axis("tokens", log=True), Axis("MB", log=True), lines)


def _operations(card: Card, at: list[Lengths]) -> Chart:
    tokens, found = [float(one.tokens) for one in at], [card.costs_at(one) for one in at]
    lines = [Line("the last token", tokens, [one.token / GFLOP for one in found])]
    if card.config.encoder is not None:
        of_source = [one.source / GFLOP for one in found]
        lines.append(Line("one position of the source", tokens, of_source))
    title = f"Operations of {card.title} by length"
    return Chart("operations", title, Axis("tokens", log=True), Axis("GFLOP a token", log=True), lines)
