"""How gradients fade with distance in recurrent nets, not in attention (Bengio et al. 1994)."""

import math
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import torch
from torch import Tensor, nn

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.jacobians import by_distance, by_products, mean_field, shared_evenly
from model.labs.nets import Net, Recurrent, build, inputs, open_gates
from model.labs.parameters.recurrence import Gradients
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import counted

SHOWN: tuple[Net, ...] = ("RNN", "LSTM", "GRU", "self-attention")
# Nets × distance × width²: a few seconds on two cores.
MOST = 8_000_000


@dataclass
class Found:
    """What was measured so far, one entry a seed: norms by distance [T], and what theory has for them."""

    norms: dict[Net, list[Tensor]]
    predicted: list[Tensor]
    levels: list[float]
    apart: list[float]

    def norm(self, net: Net) -> Tensor:
        """The median over seeds, [T]."""
        return torch.stack(self.norms[net]).quantile(0.5, dim=0)  # [T]

    @property
    def expected(self) -> Tensor:
        """The median of the mean-field predictions for the RNN, [T]."""
        return torch.stack(self.predicted).quantile(0.5, dim=0)  # [T]


def run(parameters: Gradients, bench: Bench) -> Result:
    """Norm of d output_T / d input_t against T - t, over nets that are drawn anew for each seed.

    Raises InputError where this would take too long.
    """
    _refuse_too_much(parameters)
    found, result = Found({net: [] for net in SHOWN}, [], [], []), Result()
    for i in range(parameters.seeds):
        _measure(found, parameters, (parameters.seed + i) % 2**32, bench, i)
        result = _result(parameters, found)
        bench.report((i + 1) / parameters.seeds, f"nets of each kind: {i + 1} of {parameters.seeds}", result)
    return result


def _refuse_too_much(parameters: Gradients) -> None:
    needed = parameters.seeds * parameters.distance * parameters.width**2
    if needed > MOST:
        raise InputError(
            f"{counted(parameters.seeds, 'net')} of width {parameters.width} over distance "
            f"{parameters.distance} would take long: take fewer or narrower nets or a smaller distance, so "
            f"that nets × distance × width² ({needed}) is at most {MOST}."
        )


def _measure(found: Found, parameters: Gradients, seed: int, bench: Bench, done: int) -> None:
    x = inputs(1, parameters.distance + 1, parameters.width, seed)
    nets = {net: started_net(net, parameters, seed) for net in SHOWN}
    for i, net in enumerate(SHOWN):
        bench.report((done + i / len(SHOWN)) / parameters.seeds, f"net {done + 1}, {net}", None)
        found.norms[net].append(by_distance(nets[net], x))
    norms = found.norms["RNN"][-1]
    found.apart.append((by_products(nets["RNN"], x) - norms).abs().max().item())
    found.predicted.append(mean_field(nets["RNN"], x, norms))
    found.levels.append(shared_evenly(nets["self-attention"], len(norms)))


def started_net(net: Net, parameters: Gradients, seed: int) -> nn.Module:
    """A net with its recurrent weights times `gain`, and its gates opened to the past by `keep_bias`."""
    module = build(net, parameters.width, seed)
    open_gates(module, parameters.keep_bias)
    if isinstance(module, Recurrent):
        with torch.no_grad():
            module.weights("hh").mul_(parameters.gain)
    return module


def _result(parameters: Gradients, found: Found) -> Result:
    distances = list(range(parameters.distance + 1))
    level = fmean(found.levels)
    theory = [
        Line("RNN, mean field", distances, found.expected, "theory"),
        Line("attention shared evenly", distances, [level] * len(distances), "theory"),
    ]
    chart = Chart(
        "norms",
        f"Gradient that reaches an input: median and quartiles of {counted(len(found.levels), 'net')}",
        Axis("distance T − t, positions"),
        Axis("‖∂ output at T / ∂ input at t‖", log=True),
        [*(_banded(net, distances, torch.stack(found.norms[net])) for net in SHOWN), *theory],
    )
    return Result([chart], _checks(parameters, found, level), _facts(parameters, found), _notes(found))


def _checks(parameters: Gradients, found: Found, level: float) -> list[Check]:
    largest = max(norms.max().item() for norms in found.norms["RNN"])
    expected = _factor(found.expected)
    # A random matrix of D² entries keeps to its average up to some 1/√D, and one step more loosely than many.
    slack = 1.25 * expected * (1 + 1 / parameters.distance) * parameters.width**-0.5
    attention = torch.stack(found.norms["self-attention"]).mean().item()
    return [
        Check("RNN: autograd minus products of Jacobians", 0.0, max(found.apart), 1e-10 * max(1.0, largest)),
        Check(
            "RNN: factor a step",
            expected,
            _factor(found.norm("RNN")),
            slack,
        ),
        # Exact where every weight is 1/n; those of random scores lie around it.
        Check("self-attention: mean norm, ‖W_O W_V‖ / n", level, attention, 0.5 * level),
    ]


def _facts(parameters: Gradients, found: Found) -> dict[str, object]:
    distance = parameters.distance
    keys = {"RNN": "rnn", "LSTM": "lstm", "GRU": "gru", "self-attention": "attention"}
    medians = {net: found.norm(net) for net in SHOWN}
    kept = {net: (norms[distance] / norms[0]).item() for net, norms in medians.items()}
    return {
        "distance": distance,
        "at": {keys[net]: norms[distance].item() for net, norms in medians.items()},
        "kept": {keys[net]: share for net, share in kept.items()},
        "factor": {keys[net]: _factor(norms) for net, norms in medians.items()},
        "table": [
            {
                "net": net,
                f"gradient at distance {distance}": norms[distance].item(),
                "share of that at distance 0": kept[net],
                "factor a step": _factor(norms),
            }
            for net, norms in medians.items()
        ],
    }


def _notes(found: Found) -> list[str]:
    notes = [
        "Self-attention shares its gradient among all positions: its norm falls as one over their number."
    ]
    if any((norms == 0).any() for norms in chain.from_iterable(found.norms.values())):
        notes.append(
            "Some gradients are too small for float64 and count as zero, which a log axis cannot show."
        )
    return notes


def _banded(net: Net, distances: list[int], norms: Tensor) -> Line:
    low, middle, high = norms.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=norms.dtype), dim=0)  # [T] each
    return Line(net, distances, middle, low=low, high=high)


def _factor(norms: Tensor) -> float:
    """By what a step multiplies the norm: least squares on its logarithm, from distance 1 on where it can."""
    places = torch.arange(len(norms), dtype=norms.dtype)[norms > 0]
    logs = norms[norms > 0].log()
    if len(logs) > 2:
        places, logs = places[1:], logs[1:]
    apart = places - places.mean()
    return math.exp((apart @ logs / (apart @ apart)).item())
