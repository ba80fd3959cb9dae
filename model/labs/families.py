"""Cards of published architectures, their parameters counted and held against the published counts."""

from collections.abc import Mapping

from model.labs import card_charts, card_checks
from model.labs.bench import Bench
from model.labs.cards import Card
from model.labs.counting import pooler
from model.labs.parameters.families import Families
from model.labs.published import Model, published
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.stated import read_config


def run(parameters: Families, _bench: Bench) -> Result:
    """The card of one architecture, and all of them counted."""
    models = published().models
    cards = {name: card(name, parameters.tokens, parameters.precision) for name in models}
    chosen, model = cards[parameters.family], models[parameters.family]
    facts = {
        **chosen.facts(),
        "paper": model.paper,
        "remark": model.remark,
        "counted": model.counted,
        "count_source": model.source,
        "published": model.count,
        "families": [_row(models[name], one) for name, one in cards.items()],
        "sources": [
            {
                "model": one.title,
                "includes": one.counted,
                "published": one.count,
                "at": one.source,
                "paper": one.paper,
            }
            for one in models.values()
        ],
        "closed": [
            {
                "model": one.title,
                "layers, about": one.layers,
                "parameters, about": one.parameters,
                "origin": "estimate",
                "by": one.source,
                "remark": one.remark,
            }
            for one in published().closed.values()
        ],
    }
    checks = [
        _check(f"parameters of {models[name].title}", models[name], one, "totals")
        for name, one in cards.items()
    ]
    drawn = card_charts.charts(chosen)
    own = [_check(f"all parts of {model.title}", model, chosen, "parts"), *card_checks.checks(chosen, drawn)]
    remark = [model.remark] if model.remark else []
    series = [*drawn, _totals(models, cards), _layers(models, cards)]
    return Result(series, [*own, *checks], facts, [*remark, *chosen.notes()])


def card(name: str, tokens: int, precision: str) -> Card:
    """The card of a published architecture. Raises KeyError for a name that the file does not hold."""
    model = published().models[name]
    checkpoint = read_config(model.config)
    # Left out of the model that runs here, since it feeds classifiers only, and part of what was published.
    beside = tuple((part, pooler(checkpoint.config)) for part in model.beside)
    return Card(model.title, checkpoint, tokens, precision, beside)


def _check(name: str, model: Model, one: Card, about: str) -> Check:
    return Check(name, model.count, one.parameters, model.rounded, origin="published", about=about)


def _row(model: Model, one: Card) -> dict[str, object]:
    stacks = one.config.stacks
    attention = one.config.stack.attention
    return {
        "model": model.title,
        "stacks": " + ".join(stack.name for stack in stacks),
        "layers": " + ".join(str(stack.layers) for stack in stacks),
        "heads": attention.heads,
        "key heads": attention.kv_heads,
        "width": one.config.stack.width,
        "FFN width": one.config.stack.feed_forward.width,
        "vocabulary": one.config.embedding.vocabulary,
        "most tokens": one.config.stack.max_tokens,
        "parameters": one.parameters,
    }


def _totals(models: Mapping[str, Model], cards: Mapping[str, Card]) -> Chart:
    names = [model.title for model in models.values()]
    lines = [
        Line("counted here", names, [float(one.parameters) for one in cards.values()]),
        Line("by its authors", names, [float(model.count) for model in models.values()], "published"),
    ]
    title = "Parameters, counted here and published"
    return Chart("totals", title, Axis("model"), Axis("parameters", log=True), lines, kind="bars")


def _layers(models: Mapping[str, Model], cards: Mapping[str, Card]) -> Chart:
    closed = published().closed.values()
    layers = [float(sum(stack.layers for stack in one.config.stacks)) for one in cards.values()]
    lines = [
        Line("from the configuration", [model.title for model in models.values()], layers),
        Line("press", [one.title for one in closed], [float(one.layers) for one in closed], "estimate"),
    ]
    return Chart("layers", "Layers of all stacks", Axis("model"), Axis("layers"), lines, kind="points")
