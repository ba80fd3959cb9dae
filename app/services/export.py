"""A whole trace, with the logits of every position, and as a file of arrays for other programs (.npz)."""

from pathlib import Path

import numpy as np
import torch

from app.schemas import TraceRequest
from app.services.opened import Opened
from app.services.runs import ModelName, make_entry, prepare
from model.loading import LoadedModel


def open_whole(loaded: LoadedModel, request: TraceRequest, name: ModelName | None = None) -> Opened:
    """Runs a request with the logits of every position, where there are any. Raises what `prepare` raises."""
    prepared = prepare(request, loaded, name or ModelName(request.model, ""), budget=None)
    positions = range(len(prepared.encoded.ids)) if loaded.config.head else ()
    return Opened(prepared, make_entry(prepared, prepared.trace_id(), positions))


def write_npz(opened: Opened, path: Path) -> None:
    """Writes the arrays that `attention-atlas trace` documents."""
    trace, reading, config = opened.entry.trace, opened.prepared.reading, opened.entry.loaded.config
    arrays: dict[str, np.ndarray] = {
        "ids": np.array(reading.encoded.ids, dtype=np.int64),
        "tokens": np.array(opened.entry.tokens),
        f"final/{config.stack.name}": _array(trace.final),
    }
    if reading.source is not None:
        arrays["source_ids"] = np.array(reading.source.ids, dtype=np.int64)
        arrays["source_tokens"] = np.array(opened.entry.source_tokens)
    if trace.memory is not None:
        arrays["final/encoder"] = _array(trace.memory)
    for name, site in trace.sites.items():
        arrays[f"attention/{name}"] = _array(site.attention(site.all_heads, range(site.queries)))
    for what, tensors in trace.kept.items():
        for (stack, layer), tensor in tensors.items():
            arrays[f"{what}/{stack}/{layer}"] = _array(tensor)
    if trace.logits is not None:
        arrays["logits"] = _array(trace.logits)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _array(tensor: torch.Tensor) -> np.ndarray:
    exact = tensor if tensor.dtype == torch.float64 else tensor.float()
    array: np.ndarray = exact.cpu().numpy()
    return array
