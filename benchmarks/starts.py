"""Figure 6: from a new process to its first answers."""

from collections.abc import Iterator

from benchmarks.effort import Effort
from benchmarks.results import Start
from benchmarks.server import serving
from benchmarks.texts import first_request
from model import zoo

# Loaded last, these would wait for the others: their goals are for a process of their own.
ALONE = ("rxnmapper", "whisper-tiny.en")


def measure(effort: Effort) -> Iterator[Start]:
    """One start after the other; the files are in the system's cache from the second on."""
    for _ in range(effort.starts):
        healthz, answers = _start(tuple(zoo.entries()))
        yield Start(healthz, answers, {model: _start((model,))[1][model] for model in ALONE})


def _start(models: tuple[str, ...]) -> tuple[float, dict[str, float]]:
    with serving(models) as server:
        healthz = server.wait(server.get, "/healthz")
        return healthz, {model: server.wait(server.open_trace, first_request(model)) for model in models}
