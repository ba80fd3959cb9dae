"""Worker: how much memory a run takes beyond the loaded model, in a process that has done nothing else."""

import gc
import os
from pathlib import Path
from typing import Any

from benchmarks.calls import answer
from benchmarks.workers.models import both

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def measure(model: str, tokens: int, way: str) -> dict[str, Any]:
    """Bytes of resident memory gained at the peak of a run, and after it while its result is kept.

    `way`: ours, resid (ours with the residual stream) or eager (`transformers` with output_attentions).
    """
    models = both(model)
    if way == "eager":
        models.use_eager()

    def run(count: int) -> Any:
        if way == "eager":
            return models.theirs(models.ids(count), attentions=True)
        return models.trace(models.ids(count), ("resid",) if way == "resid" else ())

    # The first run of a length leaves 2 to 3 MB of the libraries' own buffers, which later ones use again.
    run(tokens)
    gc.collect()
    # 5 sets the kernel's record of the peak back to what is resident now (proc(5)).
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _resident()
    kept = run(tokens)
    peak, held = _peak() - before, _resident() - before
    stated = None if way == "eager" else kept.nbytes
    return {"model": model, "tokens": tokens, "way": way, "peak": peak, "held": held, "stated": stated}


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES


def _peak() -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    answer(measure)
