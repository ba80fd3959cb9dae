"""A whole trace, with the logits of every position, and as a file of arrays for other programs (.npz)."""

import time
from pathlib import Path

import numpy as np
import torch

from app.schemas import TraceRequest
from app.services.opened import Opened
from app.services.runs import ModelName, prepare, run
from app.services.trace_store import Entry
from model.loading import LoadedModel


def open_whole(loaded: LoadedModel, request: TraceRequest, name: ModelName | None = None) -> Opened:
    """Runs a request with the logits of every position, where there are any. Raises what `prepare` raises."""
    prepared = prepare(request, loaded, name or ModelName(request.model, ""), budget=None)
    ids = prepared.encoded.ids
    positions = range(len(ids)) if loaded.config.head else ()
    start = time.perf_counter()
    trace = run(loaded, prepared.encoded, prepared.plan, prepared.record, positions)
    ms = (time.perf_counter() - start) * 1000
    return Opened(prepared, Entry(prepared.trace_id(), request.model, loaded, trace, tuple(ids), ms))


def write_npz(opened: Opened, path: Path) -> None:
    """Writes `ids`, `tokens`, `attention/<site>`, `final/<stack>`; `logits` and `resid/…` where known."""
    trace, encoded = opened.entry.trace, opened.prepared.encoded
    stack = opened.entry.loaded.config.stack.name
    arrays: dict[str, np.ndarray] = {
        "ids": np.array(encoded.ids, dtype=np.int64),
        "tokens": np.array([token.text for token in encoded.tokens]),
        f"final/{stack}": _array(trace.final),
    }
    for name, site in trace.sites.items():
        arrays[f"attention/{name}"] = _array(site.attention(site.all_heads, range(site.queries)))
    for (name, layer), stream in trace.resid.items():
        arrays[f"resid/{name}/{layer}"] = _array(stream)
    if trace.logits is not None:
        arrays["logits"] = _array(trace.logits)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _array(tensor: torch.Tensor) -> np.ndarray:
    exact = tensor if tensor.dtype == torch.float64 else tensor.float()
    array: np.ndarray = exact.cpu().numpy()
    return array
