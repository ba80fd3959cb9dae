"""What one run may cost: its memory is known before it runs, and only so many runs go on at once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from model.config import StackConfig, TransformerConfig
from model.errors import Busy, OverBudget
from model.plan import lengths
from model.recorder import Recordable


def trace_bytes(
    config: TransformerConfig,
    tokens: tuple[int, int],
    record: frozenset[Recordable],
    logit_rows: int,
    itemsize: int,
) -> int:
    """Bytes a trace will hold, for an input of `tokens`: the main stack's, and those of an encoder beside it.

    They are q, k, v of every site, the last states, what `record` asks for, and `logit_rows` rows of logits.
    """
    numbers = sum(_site_numbers(config, site, *lengths(site, *tokens)) for site in config.sites)
    for stack in config.stacks:
        own = lengths(stack.self_sites[0], *tokens)[0]
        numbers += own * (stack.width + sum(_recorded_numbers(stack, what) for what in record))
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


# How often somebody who waits in line is asked whether they still do.
ASK_SECONDS = 0.2


def _patient() -> None:
    """Waits without a word."""


class Slots:
    """At most `running` runs at once, which would only slow each other, and `waiting` in line."""

    def __init__(self, running: int, waiting: int, what: str = "sentences") -> None:
        """`what` other people run, for the sentence that says so."""
        self._running = threading.Semaphore(running)
        self._admitted = threading.Semaphore(running + waiting)
        self._what = what

    @contextmanager
    def take(self, waiting: Callable[[], None] = _patient) -> Iterator[None]:
        """Admits and takes its turn. Raises what `admit` and `turn` raise."""
        self.admit()
        with self.turn(waiting):
            yield

    def admit(self) -> None:
        """A place in line, at once, for who then takes their turn. Raises Busy where the line is full."""
        if not self._admitted.acquire(blocking=False):
            raise Busy(f"This server is busy with other people's {self._what}: try again in a few seconds.")

    @contextmanager
    def turn(self, waiting: Callable[[], None] = _patient) -> Iterator[None]:
        """Holds a slot for one who was admitted; while others have them `waiting` is called, again and again.

        The place is given back at the end, whatever is raised. Raises what `waiting` raises.
        """
        try:
            wait = 0.0
            while not self._running.acquire(timeout=wait):
                waiting()
                wait = ASK_SECONDS
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._admitted.release()


def _site_numbers(config: TransformerConfig, site: str, queries: int, keys: int) -> int:
    attention = config.attention_of(site)
    return (queries * attention.heads + 2 * keys * attention.kv_heads) * attention.head_width


def _recorded_numbers(stack: StackConfig, what: Recordable) -> int:
    """Numbers a token that recording `what` keeps, over all layers."""
    attention, sublayers = stack.attention, 3 if stack.cross else 2
    a_layer = {
        "resid": stack.width,
        "mid": 0 if stack.parallel else stack.width * (sublayers - 1),
        "attn_out": stack.width,
        "cross_out": stack.width if stack.cross else 0,
        "ffn_out": stack.width,
        "head_out": attention.heads * attention.head_width * (sublayers - 1),
        "ffn_pre": stack.feed_forward.width,
        "ffn_act": stack.feed_forward.width,
        "norms": 2 * sublayers * (2 if stack.norm_placement == "both" else 1),
    }
    return a_layer[what] * (stack.layers + (what == "resid"))
