"""A text on a real model, for a lab: tokens and trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from model.errors import InputError, TooLong
from model.inputs import Inputs
from model.labs.bench import Bench
from model.loading import LoadedModel
from model.plan import Plan
from model.recorder import Recordable
from model.text import Encoded
from model.trace import Trace


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


def read(loaded: LoadedModel, model_id: str, text: str) -> Encoded:
    """The tokens of a text. Raises TooLong, or InputError for a model of two texts or without tokenizer."""
    if loaded.config.encoder is not None:
        raise InputError(
            f"{model_id} has an encoder and a decoder; this lab looks into one stack: choose another."
        )
    if loaded.encoder is None:
        raise InputError(
            f"{model_id} came without a tokenizer, so it cannot read a text here: choose another model."
        )
    encoded = loaded.encoder.encode(text, None)
    most = loaded.config.stack.max_tokens
    if len(encoded.ids) > most:
        raise TooLong(
            f"The text has {len(encoded.ids)} tokens and {model_id} was made for {most}: shorten it.",
            limit=most,
        )
    return encoded


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
) -> Ran:
    """Runs a text on a model. Raises what `read` raises, NotReady, UnknownModel or PlanError."""
    loaded = bench.model(model_id)
    encoded = read(loaded, model_id, text)
    return Ran(loaded, encoded, run_ids(loaded, encoded, plan, record))
