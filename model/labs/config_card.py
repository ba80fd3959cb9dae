"""The card of any configuration: read as a checkpoint's would be, what is unknown refused by its name."""

from model.labs.bench import Bench
from model.labs.card_charts import charts
from model.labs.card_checks import checks
from model.labs.cards import Card
from model.labs.parameters.families import ConfigCard
from model.labs.result import Result
from model.labs.stated import assignments, read_text


def run(parameters: ConfigCard, _bench: Bench) -> Result:
    """The card. Raises InputError where the text is no JSON object or names no family, or ConfigError."""
    checkpoint, assumed = read_text(parameters.text)
    family = checkpoint.family
    card = Card(f"this {family} model", checkpoint, parameters.tokens, parameters.precision)
    facts = {
        "family": family,
        "a_family": f"{'An' if family[0] in 'aeiox' else 'A'} {family}",
        "readout": checkpoint.config.readout,
        "assumed": dict(assumed),
        **card.facts(),
    }
    notes = (
        [f"Not in the text, and so at the default of {family}: {assignments(assumed)}."] if assumed else []
    )
    drawn = charts(card)
    return Result(drawn, checks(card, drawn), facts, [*notes, *card.notes()])
