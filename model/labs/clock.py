"""Times of nets on this device: repeated, in turns, so that what disturbs one disturbs all."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import torch
from torch import Tensor, nn

from model.labs.bench import Bench
from model.labs.nets import NETS, Net, build, inputs
from model.labs.parameters.recurrence import RecurrenceTime
from model.labs.result import Line
from model.labs.words import counted

# From this length on, and where the longest run takes so many times a single step, growth with n shows.
LONG, BEYOND = 32, 4
# So many rounds, whose quartiles lie so near: else the machine was at something else, and nothing is judged.
ENOUGH, CALM = 8, 0.15


@dataclass
class Times:
    """Milliseconds of each net at each length, one a round."""

    device: str
    taken: dict[tuple[Net, int], list[float]] = field(default_factory=dict)

    def quantiles(self, net: Net, length: int) -> list[float]:
        """Lower quartile, median, upper quartile, in milliseconds."""
        wanted = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
        return torch.tensor(self.taken[net, length], dtype=torch.float64).quantile(wanted).tolist()

    def median(self, net: Net, length: int) -> float:
        """The median in milliseconds."""
        return self.quantiles(net, length)[1]

    def line(self, net: Net, lengths: Sequence[int]) -> Line:
        """Medians against length, between their quartiles."""
        low, middle, high = zip(*(self.quantiles(net, length) for length in lengths), strict=True)
        return Line(net, lengths, middle, low=low, high=high)

    def growth(self, net: Net, lengths: Sequence[int]) -> tuple[float, float] | None:
        """The exponent of time, less a single step's, over the last doubling of n, and its standard error.

        1 where each position takes as long as the one before. None where lengths are short,
        the start is most of the time, or rounds are few or disturb each other.
        """
        last, first = lengths[-1], lengths[0]
        half = max((n for n in lengths if 2 * n <= last), default=first)
        start = self.median(net, first)
        if not all(self._calm(net, length) for length in (first, half, last)):
            return None
        if last < LONG or self.median(net, last) < BEYOND * start or self.median(net, half) <= start:
            return None

        def exponent(at_last: float, at_half: float) -> float:
            ratio = (at_last - start) / (at_half - start)
            return math.log(ratio) / math.log((last - first) / (half - first))

        pairs = zip(self.taken[net, last], self.taken[net, half], strict=True)
        each = torch.tensor([exponent(*pair) for pair in pairs if min(pair) > start], dtype=torch.float64)
        low, high = each.quantile(torch.tensor([0.25, 0.75], dtype=torch.float64)).tolist()
        # Normal quartiles lie 1.349 standard deviations apart; a median has π/2 of a mean's variance.
        error = (high - low) / 1.349 * math.sqrt(math.pi / 2 / len(each))
        return exponent(self.median(net, last), self.median(net, half)), error

    def _calm(self, net: Net, length: int) -> bool:
        low, middle, high = self.quantiles(net, length)
        return len(self.taken[net, length]) >= ENOUGH and high - low <= CALM * middle

    def compared(self, net: Net, other: Net, lengths: Sequence[int]) -> list[int]:
        """-1 at each length where `net` is clearly faster than `other`, 1 where slower, else 0."""
        return [_clearly(self.quantiles(net, length), self.quantiles(other, length)) for length in lengths]

    def crossings(self, net: Net, other: Net, lengths: Sequence[int]) -> list[float]:
        """Where both change places: on a line, on log axes, between lengths where each is clearly ahead."""
        verdicts = self.compared(net, other, lengths)
        decided = [length for length, verdict in zip(lengths, verdicts, strict=True) if verdict]
        found = []
        for before, after in pairwise(decided):
            first, second = (math.log(self.median(net, n) / self.median(other, n)) for n in (before, after))
            if (first < 0) != (second < 0):
                found.append(before * (after / before) ** (first / (first - second)))
        return found


def _clearly(ours: list[float], theirs: list[float]) -> int:
    if ours[2] < theirs[0]:
        return -1
    return 1 if theirs[2] < ours[0] else 0


def spans(lengths: Sequence[int], chosen: Sequence[bool]) -> str:
    """The chosen lengths in words: "1 to 4, 64", runs of neighbours joined; "none" where none is chosen."""
    marked = zip(lengths, chosen, strict=True)
    runs = [[n for n, _ in run] for taken, run in groupby(marked, key=lambda pair: pair[1]) if taken]
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs) or "none"


def time_all(parameters: RecurrenceTime, lengths: Sequence[int], bench: Bench) -> Iterator[tuple[int, Times]]:
    """Rounds of timings: how many are done, and all times so far. A first round, not counted, warms up."""
    nets = {net: build(net, parameters.width, parameters.seed, fused=True).float() for net in NETS}
    nets = {net: module.to(bench.device) for net, module in nets.items()}
    x = inputs(1, lengths[-1], parameters.width, parameters.seed).float().to(bench.device)
    times = Times(_device_in_words(bench.device))
    for done in range(parameters.rounds + 1):
        for length in lengths:
            for net, module in nets.items():
                taken = _milliseconds(module, x[:, :length], bench.device, backward=parameters.backward)
                if done:
                    times.taken.setdefault((net, length), []).append(taken)
            bench.report(max(0, done - 1) / parameters.rounds, f"round {done or 1}, length {length}", None)
        if done:
            yield done, times


def _milliseconds(net: nn.Module, x: Tensor, device: str, *, backward: bool) -> float:
    with torch.set_grad_enabled(backward):
        begun = _now(device)
        out = net(x)
        if backward:
            torch.autograd.grad(out.sum(), list(net.parameters()))
        return (_now(device) - begun) * 1000


def _now(device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


def _device_in_words(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{device}, {counted(torch.get_num_threads(), 'thread')}" if device == "cpu" else device
