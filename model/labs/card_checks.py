"""What a card shows, held against formulas and against a small model of the same form that ran."""

from collections.abc import Iterator, Sequence

from model.labs import costs, formulas
from model.labs.card_charts import GFLOP, MB
from model.labs.cards import Card
from model.labs.counting import block_matrices, weights
from model.labs.result import Chart, Check
from model.labs.small_costs import small

# Counts are whole numbers; curves are drawn in floating point, in millions or billions of them.
RELATIVE = 1e-9


def checks(card: Card, drawn: Sequence[Chart]) -> list[Check]:
    """Sizes, operations and memory: by formula from the configuration, and by counting what torch did."""
    return [*_sizes(card), *_at_length(card, {chart.id: chart for chart in drawn}), *_measured(card)]


def _sizes(card: Card) -> Iterator[Check]:
    config = card.config
    blocks = sum(one.parameters for one in card.weights if one.matrix and ".blocks." in one.name)
    expected = sum(block_matrices(stack) for stack in config.stacks)
    yield Check(f"matrices of the blocks of {card.title}", expected, blocks, about="parts")
    every = formulas.parameters(config) + _beside(card)
    yield Check("all parameters, by formula", every, card.parameters, about="parts")
    outside = every - formulas.vocabulary_and_places(config)
    name = "parameters outside the embeddings, by formula"
    yield Check(name, outside, card.without_embeddings, about="parts")


def _beside(card: Card) -> int:
    return sum(number for _, number in card.beside)


def _at_length(card: Card, drawn: dict[str, Chart]) -> Iterator[Check]:
    """The facts of the length that is asked for and the curves there, whichever is farther off."""
    config, tokens, source = card.config, card.lengths.tokens, card.lengths.source
    shown, size = card.facts(), card.bytes
    rows = [
        ("operations", 0, GFLOP, "operations of the last token: 2 a number of a matrix, 4 K a head and key",
         formulas.operations(config, tokens, source), shown["token_operations"]),
        ("memory", 0, MB, "bytes of attention written out, by formula",
         size * formulas.attention(config, tokens, source), shown["attention_bytes"]),
        ("memory", 1, MB, "bytes of keys and values, by formula",
         size * formulas.cache(config, tokens, source), shown["cache_bytes"]),
        ("memory", 2, MB, "bytes of weights, by formula",
         size * (formulas.parameters(config) + _beside(card)), shown["weights_bytes"]),
    ]  # fmt: skip
    if config.encoder is not None:
        expected, stated = formulas.source_operations(config, source), shown["source_operations"]
        name = "operations of one position of the source, by the same formula"
        rows.append(("operations", 1, GFLOP, name, expected, stated))
    for about, index, unit, name, expected, stated in rows:
        line = drawn[about].lines[index]
        curve = (dict(zip(line.x, line.y, strict=True))[float(tokens)] or 0) * unit
        assert isinstance(stated, int)
        measured = max(float(stated), curve, key=lambda found, wanted=expected: abs(found - wanted))
        yield Check(name, expected, measured, RELATIVE * expected, about=about)
    further = formulas.cache(config, tokens + 1, source) - formulas.cache(config, tokens, source)
    yield Check("bytes that a further token adds, by formula", size * further, card.further, about="memory")


def _measured(card: Card) -> Iterator[Check]:
    """The functions that count costs, tried on a small model while torch's own counts say what it did."""
    ran = small(card.checkpoint)
    config, at, found = ran.checkpoint.config, ran.lengths, weights(ran.checkpoint)
    # Every query sees all keys in a plain run, and so costs what the last one does.
    work = at.tokens * costs.token_operations(config, found, at)
    work += at.source * costs.source_operations(config, found, at)
    yield Check(
        "operations of a small model of this form, as it ran", work, ran.operations, about="operations"
    )
    kept, written = costs.cache_numbers(config, at), costs.attention_numbers(config, at)
    yield Check("keys and values that a small model of this form kept", kept, ran.kept, about="memory")
    yield Check("attention weights of a small model of this form", written, ran.attention, about="memory")
