"""Figure 2: the memory of a trace, a fresh process for every number."""

from collections.abc import Iterator

from benchmarks.calls import call
from benchmarks.effort import Effort
from benchmarks.results import Memory

WAYS = ("ours", "resid", "eager")

# By default glibc raises this limit whenever a large block is freed; later blocks then come from its heap and
# stay there after they are freed, so the peak would count temporaries that were long gone. Held at 64 KiB,
# every tensor of that size is a mapping of its own and leaves when it is freed: what is resident is in use.
MAPPED_FROM = {"MALLOC_MMAP_THRESHOLD_": "65536"}


def measure(effort: Effort) -> Iterator[Memory]:
    """Every model, length and way of the effort."""
    for model, lengths in effort.memory:
        for way in WAYS:
            for tokens in lengths:
                yield Memory(**call("memory", MAPPED_FROM, model=model, tokens=tokens, way=way))
