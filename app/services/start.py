"""Brings torch in: the engine on the device the settings name, and how a model is loaded onto it."""

from pathlib import Path

import torch

from app import memory
from app.services.engine import Engine
from app.services.model_pool import ModelPool
from app.services.runs import ModelName, load_and_try
from app.services.trace_store import TraceStore
from app.settings import Settings
from model.devices import choose_device, use_exact_arithmetic
from model.loading import LoadedModel

# Where the system does not say how much memory there is.
TRACE_BYTES = 1 << 30


def start_engine(settings: Settings, pool: ModelPool) -> Engine:
    """The engine. Raises InputError where the wanted device is not there."""
    use_exact_arithmetic()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    store = TraceStore(settings.trace_bytes or TRACE_BYTES)
    return Engine(lambda model_id: _find(pool, model_id), store, choose_device(settings.device))


def load(path: Path, settings: Settings) -> LoadedModel:
    """Loads a model where the settings say, and lets it answer once."""
    device = choose_device(settings.device)
    return load_and_try(path, device, settings.dtype, _weight_memory(device))


def _find(pool: ModelPool, model_id: str) -> tuple[LoadedModel, ModelName]:
    loaded, status = pool.get(model_id), pool.status_of(model_id)
    return loaded, ModelName(status.title, status.revision or "")


def _weight_memory(device: str) -> int | None:
    if device.startswith("cuda"):
        return int(torch.cuda.get_device_properties(device).total_memory)
    return memory.machine_bytes()
