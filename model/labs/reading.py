"""A text on a real model, for a lab: tokens and trace."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from model.errors import InputError, TooLong
from model.inputs import Inputs
from model.labs.bench import Bench
from model.loading import LoadedModel
from model.plan import Plan
from model.recorder import Recordable
from model.text import Encoded, TextEncoder
from model.trace import Trace

# No lab runs more tokens, whatever the model was made for: a run of these takes a second or two.
MOST_TOKENS = 512

_notices: ContextVar[list[str] | None] = ContextVar("notices", default=None)


@dataclass(frozen=True)
class Ran:
    """One text that ran: its model, its tokens and what happened inside."""

    loaded: LoadedModel
    encoded: Encoded
    trace: Trace

    @property
    def labels(self) -> list[str]:
        """The tokens as texts."""
        return [token.text for token in self.encoded.tokens]


def limits_of(loaded: LoadedModel, *names: Literal["layer", "head"]) -> dict[str, int]:
    """The last layer and the last head of a model's one stack, those of them that are named."""
    stack = loaded.config.stack
    last = {"layer": stack.layers - 1, "head": stack.attention.heads - 1}
    return {name: last[name] for name in names}


@contextmanager
def noticing() -> Iterator[list[str]]:
    """Gathers what tokenizers tell of the texts that `read` reads inside, each notice once."""
    gathered: list[str] = []
    before = _notices.set(gathered)
    try:
        yield gathered
    finally:
        _notices.reset(before)


def read(loaded: LoadedModel, model_id: str, text: str, most: int = MOST_TOKENS) -> Encoded:
    """The tokens of a user's text, whose notices `noticing` hears.

    Raises TooLong where they are more than `most` or than the model was made for, and what
    `encoder_of` raises.
    """
    encoded = encoder_of(loaded, model_id).encode(text, None)
    check_length(encoded, loaded, model_id, most)
    note(encoded)
    return encoded


def note(encoded: Encoded) -> None:
    """Lets `noticing` hear what the tokenizer tells of a user's text that was not read by `read`."""
    gathered = _notices.get()
    if gathered is not None:
        gathered += [notice for notice in encoded.notices if notice not in gathered]


def encoder_of(loaded: LoadedModel, model_id: str) -> TextEncoder:
    """What reads texts for a lab. Raises InputError for a model of two texts or without tokenizer."""
    if loaded.config.encoder is not None:
        raise InputError(
            f"{model_id} has an encoder and a decoder; this lab looks into one stack: choose another."
        )
    if loaded.encoder is None:
        raise InputError(
            f"{model_id} came without a tokenizer, so it cannot read a text here: choose another model."
        )
    return loaded.encoder


def check_length(encoded: Encoded, loaded: LoadedModel, model_id: str, most: int) -> None:
    """Raises TooLong, naming the smaller of what the lab takes and what the model was made for."""
    tokens, made_for = len(encoded.ids), loaded.config.stack.max_tokens
    limit = min(most, made_for)
    if tokens <= limit:
        return
    who = f"this lab takes {most}" if most < made_for else f"{model_id} was made for {made_for}"
    cut = encoded.cut(limit)
    facts = {"limit": limit, "tokens": tokens} | ({} if cut is None else {"cut": cut})
    raise TooLong(f"The text has {tokens} tokens and {who}: shorten it.", **facts)


def run_ids(
    loaded: LoadedModel,
    encoded: Encoded,
    plan: Sequence[dict[str, object]] = (),
    record: Sequence[Recordable] = (),
    logit_positions: Sequence[int] = (),
) -> Trace:
    """Runs tokens under a plan, given in its JSON form."""
    inputs = Inputs.of(encoded.ids, encoded.segments, loaded.device)
    parsed = Plan.parse(list(plan)).canonical(loaded.config)
    return loaded.transformer.trace(inputs, parsed, frozenset(record), logit_positions)


def run_text(
    bench: Bench,
    model_id: str,
    text: str,
    plan: Sequence[dict[str, object]] = (),
    record: Sequence[Recordable] = (),
    most: int = MOST_TOKENS,
) -> Ran:
    """Runs a text on a model. Raises what `read` raises, NotReady, UnknownModel or PlanError."""
    loaded = bench.model(model_id)
    encoded = read(loaded, model_id, text, most)
    return Ran(loaded, encoded, run_ids(loaded, encoded, plan, record))
