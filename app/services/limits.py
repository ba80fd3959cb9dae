"""What one run may cost: its memory is known before it runs, and only so many runs go on at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from model.config import StackConfig, TransformerConfig
from model.errors import Busy, OverBudget


def trace_bytes(
    config: TransformerConfig, tokens: int, record: frozenset[str], logit_rows: int, itemsize: int
) -> int:
    """Bytes a trace of `tokens` tokens will hold.

    They are q, k, v of every site, the last state, what `record` asks for, and `logit_rows` rows of logits.
    """
    numbers = tokens * (_site_numbers(config.stack) * config.stack.layers + config.stack.width)
    if "resid" in record:
        numbers += tokens * config.stack.width * (config.stack.layers + 1)
    return (numbers + logit_rows * config.embedding.vocabulary) * itemsize


def check_budget(needed: int, budget: int, tokens: int) -> None:
    """Raises OverBudget where a trace of `needed` bytes exceeds what this server keeps for traces."""
    if needed > budget:
        raise OverBudget(
            f"A trace of {tokens} tokens needs {needed / 1e6:.0f} MB, more than the {budget / 1e6:.0f} MB "
            "this server keeps for traces: shorten the text, or raise ATLAS_TRACE_BYTES.",
            needed=needed,
            budget=budget,
        )


class Slots:
    """At most `running` runs at once, which would only slow each other, and `waiting` in line."""

    def __init__(self, running: int, waiting: int) -> None:
        self._running = threading.Semaphore(running)
        self._admitted = threading.Semaphore(running + waiting)

    @contextmanager
    def take(self) -> Iterator[None]:
        """Holds a slot. Raises Busy where the line is full."""
        if not self._admitted.acquire(blocking=False):
            raise Busy("This server is busy with other people's sentences: try again in a few seconds.")
        try:
            with self._running:
                yield
        finally:
            self._admitted.release()


def _site_numbers(stack: StackConfig) -> int:
    attention = stack.attention
    return (attention.heads + 2 * attention.kv_heads) * attention.head_width
