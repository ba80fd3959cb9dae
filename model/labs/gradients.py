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
from model.labs.stepwise import by_steps, of_attention
from model.labs.words import counted

SHOWN: tuple[Net, ...] = ("RNN", "LSTM", "GRU", "self-attention")
HOW: dict[Net, str] = {
    "RNN": "autograd against products of Jacobians",
    "LSTM": "autograd against products of single steps' Jacobians, first net",
    "GRU": "autograd against products of single steps' Jacobians, first net",
    "self-attention": "autograd against its derivative by hand",
}
SMALLEST = 1e-290
# Nets × distance × width²: a few seconds on two cores.
MOST = 8_000_000


@dataclass
class Found:
    """What was measured so far, one entry a seed: norms by distance [T], and what theory has for them."""

    norms: dict[Net, list[Tensor]]
    predicted: list[Tensor]
    levels: list[float]
    apart: dict[Net, float]

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
    found, result = Found({net: [] for net in SHOWN}, [], [], {}), Result()
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
    _compare(found, "RNN", by_products(nets["RNN"], x))
    _compare(found, "self-attention", of_attention(nets["self-attention"], x))
    if not done:
        _compare(found, "LSTM", by_steps("LSTM", nets["LSTM"], x))
        _compare(found, "GRU", by_steps("GRU", nets["GRU"], x))
    found.predicted.append(mean_field(nets["RNN"], x, norms))
    found.levels.append(shared_evenly(nets["self-attention"], len(norms)))


def _compare(found: Found, net: Net, again: Tensor) -> None:
    """Keeps how far the norms of the last seed are from those found another way, each in units of its own."""
    norms = found.norms[net][-1][: len(again)]
    # Numbers near the end of their range have fewer digits.
    difference = ((again - norms).abs() / (norms + SMALLEST)).max().item()
    found.apart[net] = max(found.apart.get(net, 0.0), difference)


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
        f"Gradient that reaches an input, {_drawn(len(found.levels))}",
        Axis("distance T − t, positions"),
        Axis("‖∂ output at T / ∂ input at t‖", log=True),
        [*(_banded(net, distances, torch.stack(found.norms[net])) for net in SHOWN), *theory],
    )
    return Result(
        [chart], _checks(parameters, found, level), _facts(parameters, found), _notes(parameters, found)
    )


def _drawn(nets: int) -> str:
    return "one net of each kind" if nets == 1 else f"median and quartiles of {nets} nets of each kind"


def _checks(parameters: Gradients, found: Found, level: float) -> list[Check]:
    nets = len(found.levels)
    expected, measured = (math.log10(_factor(norms)) for norms in (found.expected, found.norm("RNN")))
    wide = Check("RNN: log₁₀ of the factor a step", expected, measured, _scatter(parameters, nets))
    beyond = torch.stack(found.norms["self-attention"])[:, 1:].mean().item()
    mean = fmean(found.levels)
    return [
        *(
            Check(f"{net}: {HOW[net]}, largest relative difference", 0.0, apart, 1e-9, "<=")
            for net, apart in found.apart.items()
        ),
        *([] if _bent(parameters) else [wide]),
        Check(
            "self-attention: mean norm from distance 1 on, ‖W_O W_V‖ / n",
            level,
            beyond,
            mean * _attention_scatter(parameters, nets),
        ),
    ]


def _bent(parameters: Gradients) -> bool:
    """Whether a few saturated numbers decide, of which a theory for wide nets knows nothing."""
    return parameters.gain > 2 and parameters.width < 16


def _scatter(parameters: Gradients, nets: int) -> float:
    """What chance may do to log₁₀ of the RNN's factor, four standard errors of the median of `nets` nets.

    The mean field is exact for infinitely wide nets. The largest eigenvalues of one random D × D matrix,
    which powers of it follow, scatter by some 1.7 / (D + 2) in ln; measured over a single step, by half as
    much more. Large gains bend the state, and slopes then hang together: an offset of some (gain - 1) / D.
    """
    one = 1.7 / (parameters.width + 2) * (1 + 0.5 / max(1, parameters.distance - 1))
    error = one * min(1.0, math.sqrt(math.pi / 2 / nets))
    offset = max(0.0, parameters.gain - 1) / parameters.width
    return (4 * error + offset) / math.log(10)


def _attention_scatter(parameters: Gradients, nets: int) -> float:
    """What the mean norm may be off by, as a share of ‖W_O W_V‖ / n.

    Scores hang on the input as well, which adds a matrix of rank one and a ninth of the square: 1/18 of the
    norm, scattered by 0.18/√D. The weights scatter by some 0.35; they sum to one, so that the mean over
    `distance` positions scatters by 0.35 / distance.
    """
    return 1 / 18 + 4 * math.sqrt((0.18**2 / parameters.width + (0.35 / parameters.distance) ** 2) / nets)


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


def _notes(parameters: Gradients, found: Found) -> list[str]:
    notes = [
        "Self-attention shares its gradient among all positions: its norm falls as one over their number.",
        (
            "At distance 0 it depends on its input through the query as well, which no other position has: "
            "factors a step are fitted from distance 1 on, where there is more than one."
        ),
    ]
    if _bent(parameters):
        notes.append(
            "The mean field is for wide nets: at so small a width and large a gain it is not judged."
        )
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
