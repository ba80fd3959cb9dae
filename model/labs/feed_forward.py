"""ReLU, GELU and SiLU, and their derivatives by autograd against the closed forms."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from model.config import Activation
from model.ffn import ACTIVATIONS
from model.labs.bench import Bench
from model.labs.parameters.feed_forward import Activations
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import ACTIVATION_NAMES as NAMES

POINTS, SPARSE = 401, 16
# The constants of the tanh form (Hendrycks and Gimpel 2016, section 2).
TANH_SCALE, TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def run(parameters: Activations, _bench: Bench) -> Result:
    """Curves over [−reach, reach], derivatives both ways, and all of it at one point; fp64."""
    x = torch.linspace(-parameters.reach, parameters.reach, POINTS, dtype=torch.float64)  # [POINTS]
    values = {name: ACTIVATIONS[name](x) for name in NAMES}
    slopes = {name: slope(name, x) for name in NAMES}
    curves = [_line(name, x, y) for name, y in values.items()]
    lines = [_line(name, x, y) for name, y in slopes.items()]
    notes = []
    if abs(parameters.at) <= parameters.reach:
        here = torch.full((len(NAMES),), parameters.at, dtype=torch.float64)
        rows_at = [(ACTIVATIONS[name](here[:1]).item(), slope(name, here[:1]).item()) for name in NAMES]
        curves.append(Line(f"at x = {parameters.at:g}", here, [value for value, _ in rows_at]))
        lines.append(Line(f"at x = {parameters.at:g}", here, [value for _, value in rows_at]))
    else:
        notes.append(f"x = {parameters.at:g} lies outside the curves, which end at {parameters.reach:g}.")
    series = [
        Chart("curves", "What a neuron makes of its input", Axis("x"), Axis("f(x)"), curves),
        Chart(
            "derivatives", "By how much it passes a change on", Axis("x"), Axis("f′(x), by autograd"), lines
        ),
    ]
    rows = [_row(name, parameters.at) for name in NAMES]
    facts = {"at": parameters.at, "table": rows, "lowest": _lowest()}
    return Result(series, _checks(x, slopes, rows), facts, notes)


def _line(name: Activation, x: Tensor, y: Tensor) -> Line:
    """GELU's tanh form lies on GELU: a few points of it show both."""
    every = SPARSE if name == "gelu_tanh" else 1
    return Line(NAMES[name], x[::every], y[::every])


def slope(name: Activation, x: Tensor) -> Tensor:
    """The derivative at x [N] as autograd gives it, [N]."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        point = x.clone().requires_grad_()
        (found,) = torch.autograd.grad(ACTIVATIONS[name](point).sum(), point)
    return found


def _relu(x: Tensor) -> Tensor:
    return (x > 0).to(x.dtype)


def _gelu(x: Tensor) -> Tensor:
    """Φ(x) + x φ(x), for f = x Φ(x) (Hendrycks and Gimpel 2016)."""
    density = torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi)
    return (1 + torch.erf(x / math.sqrt(2))) / 2 + x * density


def _gelu_tanh(x: Tensor) -> Tensor:
    """(1 + tanh u)/2 + x (1 − tanh² u) u′/2, for f = x (1 + tanh u)/2 and u = √(2/π) (x + 0.044715 x³)."""
    tanh = torch.tanh(TANH_SCALE * (x + TANH_CUBE * x**3))
    return (1 + tanh) / 2 + x * (1 - tanh**2) * TANH_SCALE * (1 + 3 * TANH_CUBE * x**2) / 2


def _silu(x: Tensor) -> Tensor:
    """σ(x) (1 + x (1 − σ(x))), for f = x σ(x) (Elfwing et al. 2018)."""
    gate = 1 / (1 + torch.exp(-x))
    return gate * (1 + x * (1 - gate))


CLOSED: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": _relu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
}


def _at(name: Activation, x: float) -> float:
    """f(x) from its definition by Python's own functions."""
    match name:
        case "relu":
            return max(x, 0.0)
        case "gelu":
            return x * (1 + math.erf(x / math.sqrt(2))) / 2
        case "gelu_tanh":
            return x * (1 + math.tanh(TANH_SCALE * (x + TANH_CUBE * x**3))) / 2
        case "silu":
            return x / (1 + math.exp(-x))


def _row(name: Activation, at: float) -> dict[str, object]:
    x = torch.tensor([at], dtype=torch.float64)
    return {
        "activation": NAMES[name],
        "f(x)": ACTIVATIONS[name](x).item(),
        "from its definition": _at(name, at),
        "f′(x) by autograd": slope(name, x).item(),
        "f′(x) by formula": CLOSED[name](x).item(),
    }


def _checks(x: Tensor, slopes: dict[Activation, Tensor], rows: list[dict[str, object]]) -> list[Check]:
    checks = []
    for name, row in zip(NAMES, rows, strict=True):
        # A ReLU has no derivative at 0: autograd's 0 there is a convention.
        error = (slopes[name] - CLOSED[name](x))[x != 0].abs().max().item()
        checks.append(
            Check(f"{NAMES[name]}: derivative against its formula, largest difference", 0, error, 1e-12, "<=",
                  about="derivatives")
        )  # fmt: skip
        defined, found = row["from its definition"], row["f(x)"]
        assert isinstance(defined, float)
        assert isinstance(found, float)
        checks.append(Check(f"{NAMES[name]} at x", defined, found, 1e-12, about="curves"))
    return checks


def _lowest() -> list[dict[str, object]]:
    """Where each curve that dips below zero is lowest, on a fine grid."""
    x = torch.linspace(-4, 4, 80_001, dtype=torch.float64)
    found: list[dict[str, object]] = []
    for name, title in NAMES.items():
        if name == "relu":
            continue
        values = ACTIVATIONS[name](x)
        place = int(values.argmin())
        found.append({"activation": title, "lowest": values[place].item(), "at x": x[place].item()})
    return found
