"""How much memory there is, so that budgets are computed and not guessed."""

import os
from pathlib import Path

CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
MODEL_SHARE = 2
TRACE_SHARE = 8


def machine_bytes(limits: tuple[Path, ...] = CGROUP_LIMITS) -> int | None:
    """Bytes of memory this process may use, a container's limit included; None where nothing says."""
    known = [count for count in (_physical(), *map(_limit, limits)) if count is not None]
    return min(known, default=None)


def model_budget(device: str) -> int | None:
    """Bytes that loaded models may take on `device` by default: half of its memory; None where unknown."""
    if device.startswith("cuda"):
        # Only reached once a model sits on the GPU; the command line must start without torch.
        import torch  # noqa: PLC0415

        return int(torch.cuda.get_device_properties(device).total_memory) // MODEL_SHARE
    total = machine_bytes()
    return None if total is None else total // MODEL_SHARE


def trace_budget() -> int | None:
    """Bytes that kept traces may take by default: an eighth of the machine's memory; None where unknown."""
    total = machine_bytes()
    return None if total is None else total // TRACE_SHARE


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):
        return None


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
