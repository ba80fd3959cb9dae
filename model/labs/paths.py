"""How far information has to travel, by architecture (Vaswani et al. 2017, section 4 and table 1).

Which positions one step reads is not written down here: it is found where the derivative of a real module's
output is not zero. Hops are then counted in that graph.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.merged import merged
from model.labs.nets import SelfAttention, inputs, started
from model.labs.parameters.recurrence import Paths
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import counted, listed
from model.rules import Bidirectional, Causal, Window

# Whether positions depend on each other does not depend on the width, nor on which weights are drawn.
WIDTH, SEED = 4, 0


class RecurrentStep(nn.Module):
    """One step of an RNN at every position: the state of t from x_t and the state of t - 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.RNNCell(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [B, T, D], read as inputs and as states, to new states [B, T, D]."""
        before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)  # [B, T, D]
        states: Tensor = self.cell(x.flatten(0, 1), before.flatten(0, 1)).view_as(x)  # [B, T, D]
        return states


class Convolution(nn.Module):
    """One convolution that sees `reach` positions to each side."""

    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        self.layer = nn.Conv1d(width, width, 2 * reach + 1, padding=reach)

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]."""
        out: Tensor = self.layer(x.mT).mT  # [B, T, D]
        return out


@dataclass(frozen=True)
class Kind:
    """An architecture: how far one hop goes (None: anywhere), whether also back, and what table 1 says of it.

    n positions of width d; r is the window and k the kernel, counted in positions.
    """

    name: str
    net: nn.Module
    crosses: int | None
    operations: str
    sequential: str
    back: bool = True

    def longest(self, length: int) -> int:
        """The longest of the shortest paths between two connected positions, by theory."""
        return 1 if self.crosses is None else -(-(length - 1) // self.crosses)

    def distance(self, source: int, target: int) -> int | None:
        """How many hops it takes from one position to another, by theory; None where there is no way."""
        if target < source and not self.back:
            return None
        apart = abs(target - source)
        return min(apart, 1) if self.crosses is None else -(-apart // self.crosses)

    def impossible(self, path: Sequence[int]) -> int:
        """How many hops of a path this architecture cannot take."""
        apart = [after - before for before, after in pairwise(path)]
        far = math.inf if self.crosses is None else self.crosses
        return sum(hop == 0 or abs(hop) > far or (hop < 0 and not self.back) for hop in apart)


def kinds(reach: int) -> list[Kind]:
    """The architectures, with random weights."""
    found = [
        Kind("recurrent", RecurrentStep(WIDTH), 1, "n·d²", "n", back=False),
        Kind("self-attention", SelfAttention(WIDTH, Bidirectional()), None, "n²·d", "1"),
        Kind("causal attention", SelfAttention(WIDTH, Causal()), None, "n²·d", "1", back=False),
        Kind("window attention", SelfAttention(WIDTH, Window(reach, reach)), reach, "r·n·d", "1"),
        Kind("convolution", Convolution(WIDTH, reach), reach, "k·n·d²", "1"),
    ]
    for kind in found:
        started(kind.net.double(), WIDTH**-0.5, SEED)
    return found


def reads(net: nn.Module, length: int) -> Tensor:
    """True where one step of a net carries something from position s to position t: bool [T, S]."""
    # Sequence t of the batch is asked for its output at t alone, so that one backward gives every row.
    x = inputs(1, length, WIDTH, SEED).repeat(length, 1, 1).requires_grad_()  # [T, S, D]
    out = net(x).diagonal(dim1=0, dim2=1).sum()
    (slopes,) = torch.autograd.grad(out, x)  # [T, S, D]
    return (slopes != 0).any(dim=-1)  # [T, S]


def hops(read: Tensor) -> Tensor:
    """The fewest steps from position s to position t of a graph `read` [T, S]: [T, S], -1 for no way."""
    length = len(read)
    found = torch.full((length, length), -1)
    reached = torch.eye(length, dtype=torch.bool)
    for step in range(length):
        found[reached & (found < 0)] = step
        reached = (read.double() @ reached.double()) > 0  # [T, S]
    return found


def route(read: Tensor, distance: Tensor, source: int, target: int) -> list[int]:
    """The positions on a shortest path, both ends among them; empty where there is none."""
    if distance[target, source] < 0:
        return []
    path = [target]
    while path[-1] != source:
        nearer = (distance[:, source] == distance[path[-1], source] - 1) & read[path[-1]]  # [S]
        path.append(int(nearer.nonzero()[0]))
    return path[::-1]


def run(parameters: Paths, _bench: Bench) -> Result:
    """Routes between two positions, the longest path against n, and cost by architecture.

    Raises InputError where a position lies outside the sequence.
    """
    length, reach = parameters.length, parameters.reach
    for name in ("source", "target"):
        place = getattr(parameters, name)
        if place >= length:
            raise InputError(
                f"The {name} is position {place}, but {length} positions count from 0 to {length - 1}: "
                f"choose a smaller {name} or a longer sequence."
            )
    lengths = sorted({size for size in (2, 4, 8, 16, 32, 64) if size < length} | {length})
    found = kinds(reach)
    longest = {kind.name: [int(hops(reads(kind.net, size)).max()) for size in lengths] for kind in found}
    chart = Chart(
        "longest",
        "The longest path between two positions",
        Axis("positions n", log=True),
        Axis("hops", log=True),
        merged([Line(kind.name, [float(size) for size in lengths], longest[kind.name]) for kind in found]),
    )
    rows = [_row(kind, parameters, longest[kind.name][-1]) for kind in found]
    checks = [
        Check(f"{kind.name}: longest path", kind.longest(length), longest[kind.name][-1], about="longest")
        for kind in found
    ]
    checks += [check for kind, row in zip(found, rows, strict=True) for check in _ways(kind, row, parameters)]
    return Result([chart], checks, _facts(parameters, rows), _notes(parameters, rows))


def _row(kind: Kind, parameters: Paths, longest: int) -> dict[str, object]:
    read = reads(kind.net, parameters.length)
    path = route(read, hops(read), parameters.source, parameters.target)
    return {
        "name": kind.name,
        "hops": len(path) - 1 if path else None,
        "longest": longest,
        "route": path,
        "operations": kind.operations,
        "sequential": kind.sequential,
    }


def _ways(kind: Kind, row: dict[str, object], parameters: Paths) -> list[Check]:
    """The way that is drawn: its hops counted by theory, and none that the architecture cannot take."""
    path = row["route"]
    assert isinstance(path, list)
    expected = kind.distance(parameters.source, parameters.target)
    if expected is None:
        return [Check(f"{kind.name}: positions on a way back, which there is not", 0, len(path))]
    ends = (path[:1], path[-1:]) == ([parameters.source], [parameters.target])
    wrong = kind.impossible(path) + (not ends)
    return [
        Check(f"{kind.name}: hops from {parameters.source} to {parameters.target}", expected, len(path) - 1),
        Check(f"{kind.name}: ends and hops of the way drawn that cannot be", 0, wrong),
    ]


def _facts(parameters: Paths, rows: list[dict[str, object]]) -> dict[str, object]:
    by_name = {str(row["name"]).replace(" ", "_").replace("-", "_"): row["hops"] for row in rows}
    table = [
        {
            "architecture": row["name"],
            "hops here": "no path" if row["hops"] is None else row["hops"],
            "longest path": row["longest"],
            "steps in turn": row["sequential"],
            "operations per layer": row["operations"],
        }
        for row in rows
    ]
    return {
        "distance": abs(parameters.target - parameters.source),
        "source": parameters.source,
        "target": parameters.target,
        "length": parameters.length,
        "hops": by_name,
        "ways": {name: _in_words(hops) for name, hops in by_name.items()},
        "way": listed(_told(by_name)),
        "routes": rows,
        "table": table,
    }


def _told(by_name: dict[str, object]) -> list[str]:
    """The ways that there are, in words."""
    where = {
        "recurrent": "in a recurrent net",
        "self_attention": "in self-attention",
        "window_attention": "in a window",
    }
    return [
        f"{_in_words(by_name[name])} {words}" for name, words in where.items() if by_name[name] is not None
    ]


def _in_words(hops: object) -> str:
    return counted(hops, "hop") if isinstance(hops, int) else "no way"


def _notes(parameters: Paths, rows: list[dict[str, object]]) -> list[str]:
    blind = [str(row["name"]) for row in rows if row["hops"] is None]
    if not blind:
        return []
    back = "it looks back" if len(blind) == 1 else "these look back"
    return [
        f"Position {parameters.source} comes after {parameters.target}: no path in {listed(blind)}; {back}."
    ]
