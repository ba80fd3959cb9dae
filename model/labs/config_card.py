"""The card of any configuration: read as a checkpoint's would be, what is unknown refused by its name."""

from model.labs.bench import Bench
from model.labs.cards import Card
from model.labs.parameters.families import ConfigCard
from model.labs.result import Result
from model.labs.stated import read_text


def run(parameters: ConfigCard, _bench: Bench) -> Result:
    """The card. Raises InputError where the text is no JSON object, or ConfigError."""
    checkpoint = read_text(parameters.text)
    card = Card(f"this {checkpoint.family} model", checkpoint, parameters.tokens, parameters.precision)
    facts = {"family": checkpoint.family, "readout": checkpoint.config.readout, **card.facts()}
    return Result(card.charts(), [card.matrices()], facts, card.notes())
