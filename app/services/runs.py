"""From a request to a run: which tokens, under which plan, at what cost, and the run itself."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from app import __version__
from app.schemas import TraceRequest
from app.services import readouts
from app.services.limits import check_budget, trace_bytes
from app.services.reading import Reading, read, trial
from app.services.trace_store import Entry
from model.loading import LoadedModel, load_model
from model.plan import Plan
from model.recorder import Recordable
from model.text import Encoded
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
    reading: Reading
    plan: Plan
    record: frozenset[Recordable]

    @property
    def encoded(self) -> Encoded:
        """The tokens of the stack that is read out."""
        return self.reading.encoded

    def trace_id(self) -> str:
        """A hash of everything that decides the numbers."""
        source, mel = self.reading.source, self.reading.mel
        decides = {
            "engine": __version__,
            "model": [self.model_id, self.name.revision],
            "ids": self.encoded.ids,
            "segments": self.encoded.segments,
            "source": None if source is None else source.ids,
            "audio": None if mel is None else hashlib.sha256(mel.cpu().numpy().tobytes()).hexdigest(),
            "plan": self.plan.as_json(),
            "record": sorted(self.record),
            "device": [self.loaded.device, self.loaded.dtype],
        }
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]


def prepare(request: TraceRequest, loaded: LoadedModel, name: ModelName, budget: int | None) -> Prepared:
    """Reads a request; `budget` bounds the trace's bytes. Runs nothing but a target that is not given.

    Raises InputError, TooLong, OverBudget or PlanError.
    """
    plan = Plan.parse(request.plan).canonical(loaded.config)
    reading = read(request, loaded, plan)
    inputs = reading.inputs(loaded)
    loaded.transformer.program(plan, inputs.tokens, inputs.source_tokens)
    record: frozenset[Recordable] = frozenset(request.record)
    if budget is not None:
        rows = len(readouts.logit_positions(loaded, reading.encoded.ids))
        itemsize = next(loaded.transformer.parameters()).element_size()
        lengths = inputs.tokens, inputs.source_tokens
        check_budget(trace_bytes(loaded.config, lengths, record, rows, itemsize), budget, sum(lengths))
    texts = (request.text, request.text_pair)
    return Prepared(request.model, name, loaded, texts, reading, plan, record)


def run(prepared: Prepared, logit_positions: Sequence[int] = ()) -> Trace:
    """Runs what was prepared and waits until the device is done."""
    loaded = prepared.loaded
    inputs = prepared.reading.inputs(loaded)
    trace = loaded.transformer.trace(inputs, prepared.plan, prepared.record, logit_positions)
    if loaded.device == "cuda":
        torch.cuda.synchronize()
    return trace


def make_entry(prepared: Prepared, trace_id: str, logit_positions: Sequence[int]) -> Entry:
    """Runs what was prepared, for the store."""
    source = prepared.reading.source
    start = time.perf_counter()
    trace = run(prepared, logit_positions)
    ms = (time.perf_counter() - start) * 1000
    return Entry(
        trace_id,
        prepared.model_id,
        prepared.loaded,
        trace,
        tuple(token.text for token in prepared.encoded.tokens),
        () if source is None else tuple(token.text for token in source.tokens),
        ms,
    )


def load_and_try(path: Path, device: str, dtype: str, memory: int | None) -> LoadedModel:
    """Loads a model and lets it answer once: the first user need not pay for what a first run sets up."""
    loaded = load_model(path, device=device, dtype=dtype, memory=memory)
    loaded.transformer.trace(trial(loaded))
    return loaded
