"""What a decoder reads beside an encoder: its start, then a target, or what the model writes itself."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from model.errors import InputError
from model.generate import greedy
from model.inputs import Inputs
from model.loading import LoadedModel
from model.plan import OWN, Plan
from model.text import Encoded, TextEncoder, Token

# Where nobody gives a target, the decoder writes at most this much of its own.
WRITTEN_TOKENS = 64
SECONDS_A_FRAME = 0.02


def frames(count: int) -> Encoded:
    """One token for each position a speech encoder makes of its sound, 20 ms apart."""
    tokens = [
        Token(-1, f"{SECONDS_A_FRAME * i:.2f} s", None, (), special=False, segment=0) for i in range(count)
    ]
    return Encoded([-1] * count, [0] * count, tokens, [])


def of_ids(loaded: LoadedModel, ids: Sequence[int]) -> Encoded:
    """Exactly these tokens. Raises InputError where there are none, or one is not in the vocabulary."""
    vocabulary = loaded.config.embedding.vocabulary
    if not ids:
        raise InputError("The list of ids is empty: give at least one.")
    for position, id_ in enumerate(ids):
        if id_ not in range(vocabulary):
            raise InputError(
                f"Id {id_} at position {position} is not in the vocabulary of 0 to {vocabulary - 1}.", id=id_
            )
    return Encoded(list(ids), [0] * len(ids), list(_describe(ids, loaded.encoder)), [])


def started(loaded: LoadedModel, encoded: Encoded) -> Encoded:
    """A target as the decoder reads it: behind its start, without the mark that ends it."""
    ids, tokens = list(encoded.ids), list(encoded.tokens)
    while tokens and tokens[-1].special and ids[-1] in loaded.config.stop:
        ids, tokens = ids[:-1], tokens[:-1]
    start = list(loaded.config.start)
    if ids[: len(start)] != start:
        tokens = [*_describe(start, loaded.encoder), *tokens]
        ids = start + ids
    return Encoded(ids, [0] * len(ids), tokens, encoded.notices)


def written(loaded: LoadedModel, heard: Inputs, plan: Plan = OWN) -> Encoded:
    """What the model writes behind its start, the likeliest token each time, under a plan.

    `heard` holds the encoder's side, its own ids are the start. The notices say where it was cut.
    """
    start = list(loaded.config.start)
    limit = min(WRITTEN_TOKENS, loaded.config.stack.max_tokens - len(start))
    more = list(greedy(loaded.transformer, heard, loaded.config.stop, limit, plan))
    whole = of_ids(loaded, [*start, *more])
    cut = [f"The target is what the model writes itself, cut after {limit} tokens."]
    return Encoded(whole.ids, whole.segments, whole.tokens, cut if len(more) == limit else [])


def _describe(ids: Sequence[int], encoder: TextEncoder | None) -> Iterator[Token]:
    """What ids stand for; a vocabulary may have rows that its tokenizer has no pieces for."""
    pieces = 0 if encoder is None else encoder.vocab_size
    for known, group in groupby(ids, key=lambda id_: id_ < pieces):
        if encoder is not None and known:
            yield from encoder.describe(list(group))
        else:
            for id_ in group:
                text = str(id_) if encoder is None else encoder.label(id_)
                yield Token(id_, text, None, (), special=False, segment=0)
