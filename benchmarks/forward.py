"""Figure 1: forward and recording, against the fused forward of `transformers`."""

from collections.abc import Iterator
from itertools import groupby

from benchmarks.calls import call
from benchmarks.effort import Effort
from benchmarks.results import Forward


def measure(effort: Effort) -> Iterator[Forward]:
    """Every model and length of the effort."""
    for model, cases in groupby(effort.forward, key=lambda case: case.model):
        for row in call("forward", model=model, sizes=[(case.tokens, case.repetitions) for case in cases]):
            yield Forward(**row)
