"""Two ways to do the same, timed side by side: what disturbs the machine disturbs both."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Pairs:
    """Milliseconds of a and b, measured in turns; entry i of both belongs to the same moment."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Time of a over time of b, pair by pair."""
        return [a / b for a, b in zip(self.a, self.b, strict=True)]


def interleaved(a: Callable[[], object], b: Callable[[], object], repetitions: int) -> Pairs:
    """Times a and b in the order a b b a …: neither always runs on what the other left in the caches."""
    a(), b()
    times: dict[Callable[[], object], list[float]] = {a: [], b: []}
    for turn in range(repetitions):
        for action in (a, b) if turn % 2 == 0 else (b, a):
            times[action].append(milliseconds(action))
    return Pairs(tuple(times[a]), tuple(times[b]))


def milliseconds(action: Callable[[], object]) -> float:
    """How long one call takes."""
    start = perf_counter()
    action()
    return (perf_counter() - start) * 1000
