"""From a request to a run: which tokens, under which plan, at what cost, and the run itself."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import torch

from app import __version__
from app.schemas import TraceRequest
from app.services import readouts
from app.services.limits import check_budget, trace_bytes
from model.errors import InputError, TooLong
from model.inputs import Inputs
from model.interventions import Plan
from model.loading import LoadedModel, load_model
from model.recorder import Recordable
from model.text import Encoded, TextEncoder, Token
from model.trace import Trace


@dataclass(frozen=True)
class ModelName:
    """What a model is called for readers, and which revision of it is loaded."""

    title: str
    revision: str


@dataclass(frozen=True)
class Prepared:
    """A request that was understood: the model, what will run on it, and under which plan."""

    model_id: str
    name: ModelName
    loaded: LoadedModel
    texts: tuple[str | None, str | None]
    encoded: Encoded
    plan: Plan
    record: frozenset[Recordable]

    def trace_id(self) -> str:
        """A hash of everything that decides the numbers."""
        decides = {
            "engine": __version__,
            "model": [self.model_id, self.name.revision],
            "ids": self.encoded.ids,
            "segments": self.encoded.segments,
            "plan": self.plan.as_json(),
            "record": sorted(self.record),
            "device": [self.loaded.device, self.loaded.dtype],
        }
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]


def prepare(request: TraceRequest, loaded: LoadedModel, name: ModelName, budget: int | None) -> Prepared:
    """Reads a request without running it; `budget` bounds the trace's bytes.

    Raises InputError, TooLong, OverBudget or PlanError.
    """
    encoded = encode(loaded, request)
    stack, tokens = loaded.config.stack, len(encoded.ids)
    if tokens > stack.max_tokens:
        raise _too_long(request, encoded, stack.max_tokens)
    plan = Plan.parse(request.plan).canonical(stack)
    loaded.transformer.score_rules(plan, tokens)
    record: frozenset[Recordable] = frozenset(request.record)
    rows = len(readouts.logit_positions(loaded, encoded.ids))
    itemsize = next(loaded.transformer.parameters()).element_size()
    if budget is not None:
        check_budget(trace_bytes(loaded.config, tokens, record, rows, itemsize), budget, tokens)
    texts = (request.text, request.text_pair)
    return Prepared(request.model, name, loaded, texts, encoded, plan, record)


def encode(loaded: LoadedModel, request: TraceRequest) -> Encoded:
    """The tokens a request asks to run. Raises InputError where there are none, or two ways to get them."""
    if (request.text is None) == (request.ids is None):
        raise InputError("Give either a text or a list of ids to run, one of the two.")
    if request.ids is not None:
        if request.text_pair is not None:
            raise InputError("A second text cannot go with ids: put its ids in the list.")
        return _from_ids(loaded, request.ids)
    if loaded.encoder is None:
        raise InputError(
            f"{request.model} came without a tokenizer that can be read here: give ids instead of a text."
        )
    return loaded.encoder.encode(request.text or "", request.text_pair)


def run(
    loaded: LoadedModel,
    encoded: Encoded,
    plan: Plan,
    record: frozenset[Recordable] = frozenset(),
    logit_positions: Sequence[int] = (),
) -> Trace:
    """Runs a model on tokens and waits until the device is done."""
    segments = encoded.segments if loaded.config.embedding.segments else None
    inputs = Inputs.of(encoded.ids, segments, loaded.device)
    trace = loaded.transformer.trace(inputs, plan, record, logit_positions)
    if loaded.device == "cuda":
        torch.cuda.synchronize()
    return trace


def load_and_try(path: Path, device: str, dtype: str, memory: int | None) -> LoadedModel:
    """Loads a model and lets it answer once: the first user need not pay for what a first run sets up."""
    loaded = load_model(path, device=device, dtype=dtype, memory=memory)
    tokens = min(8, loaded.config.stack.max_tokens, loaded.config.embedding.vocabulary)
    run(loaded, _from_ids(loaded, list(range(tokens))), Plan())
    return loaded


def _from_ids(loaded: LoadedModel, ids: list[int]) -> Encoded:
    vocabulary = loaded.config.embedding.vocabulary
    if not ids:
        raise InputError("The list of ids is empty: give at least one.")
    for position, id_ in enumerate(ids):
        if id_ not in range(vocabulary):
            raise InputError(
                f"Id {id_} at position {position} is not in the vocabulary of 0 to {vocabulary - 1}.", id=id_
            )
    return Encoded(ids, [0] * len(ids), list(_describe(ids, loaded.encoder)), [])


def _describe(ids: list[int], encoder: TextEncoder | None) -> Iterator[Token]:
    """What ids stand for; a vocabulary may have rows that its tokenizer has no pieces for."""
    pieces = 0 if encoder is None else encoder.vocab_size
    for known, group in groupby(ids, key=lambda id_: id_ < pieces):
        if encoder is not None and known:
            yield from encoder.describe(list(group))
        else:
            for id_ in group:
                text = str(id_) if encoder is None else encoder.label(id_)
                yield Token(id_, text, None, (), special=False, segment=0)


def _too_long(request: TraceRequest, encoded: Encoded, limit: int) -> TooLong:
    extra: dict[str, object] = {"limit": limit, "tokens": len(encoded.ids)}
    kept = [token for token in encoded.tokens if token.span is not None and not token.special]
    room = limit - (len(encoded.tokens) - len(kept))
    cut = kept[room - 1].span if request.text_pair is None and 0 < room < len(kept) else None
    if cut is not None:
        extra["cut"] = cut[1]
    return TooLong(
        f"The input has {len(encoded.ids)} tokens, but {request.model} has positions for {limit}: "
        "shorten it.",
        **extra,
    )
