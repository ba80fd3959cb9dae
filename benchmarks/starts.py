"""Figure 6: from a new process to its first answers."""

from collections.abc import Iterator

from benchmarks.effort import Effort
from benchmarks.results import Start
from benchmarks.server import serving
from benchmarks.texts import text_of

FIRST_TEXT_TOKENS = 16


def measure(effort: Effort) -> Iterator[Start]:
    """One start after the other; the files are in the system's cache from the second on."""
    for _ in range(effort.starts):
        with serving() as server:
            yield Start(
                server.wait(server.get, "/healthz"),
                *(
                    server.wait(server.trace, model, text_of(model, FIRST_TEXT_TOKENS, seed=0))
                    for model in ("minilm", "smollm2")
                ),
            )
