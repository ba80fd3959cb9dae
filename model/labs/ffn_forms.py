"""Feed-forward layers with ReLU, GELU and a SwiGLU gate at equal parameters (Shazeer 2020, section 2)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import FeedForwardConfig
from model.errors import InputError
from model.ffn import FeedForward
from model.labs.bench import Bench
from model.labs.ffn_theory import SILENT, LastStep, silent_checks, trained_check
from model.labs.parameters.feed_forward import Forms
from model.labs.result import Axis, Chart, Check, Line, Result

BATCH, TESTED, BINS, RATE, EVERY, DRAWN = 256, 2048, 60, 3e-3, 10, 2
# Steps times width² times expansion: what trains in some seconds.
MOST = 40_000_000


@dataclass(frozen=True)
class Form:
    """One form of the layer: its name and what it is built from."""

    name: str
    layer: FeedForward

    @property
    def parameters(self) -> int:
        """How many numbers it has."""
        return sum(parameter.numel() for parameter in self.layer.parameters())


def run(parameters: Forms, bench: Bench) -> Result:
    """Builds the three, shows what is in their hidden layers, and trains them on one task side by side.

    Raises InputError where training would take more than some seconds.
    """
    _refuse_long(parameters)
    generator = torch.Generator().manual_seed(parameters.seed)
    forms = _forms(parameters, generator)
    # Drawn after the weights: from the same beginning they would be the first weights over again.
    x = torch.randn(1, TESTED, parameters.width, generator=generator)  # [1, T, D]
    hidden = {form.name: _hidden(form.layer, x) for form in forms}
    checks = [*_sizes(forms), *_positions(forms, x[:, :16])]
    for form in forms:
        checks += silent_checks(form.name, form.layer, _row(form, hidden[form.name]), TESTED)
    facts = {"forms": [_row(form, hidden[form.name]) for form in forms], "width": parameters.width}
    first = Result([_histogram(hidden)], checks, facts)
    losses: dict[str, list[float]] = {form.name: [] for form in forms}
    task = _task(parameters)
    lasts: list[LastStep] = []
    with torch.inference_mode(mode=False), torch.enable_grad():
        for number, form in enumerate(forms):
            for step in _train(form, task, parameters, losses[form.name], lasts):
                done = (number + step / max(parameters.steps, 1)) / len(forms)
                bench.report(done, f"training {form.name}", first if number == step == 0 else None)
    curves = _curves(losses)
    checks += [
        trained_check(last, line) for chart in curves for last, line in zip(lasts, chart.lines, strict=True)
    ]
    return Result([_histogram(hidden), *curves], checks, {**facts, "losses": _ends(losses)}, _notes(losses))


def _refuse_long(parameters: Forms) -> None:
    step = parameters.width**2 * parameters.expansion
    if step * parameters.steps > MOST:
        raise InputError(
            f"Training {parameters.steps} steps at width {parameters.width} and expansion "
            f"{parameters.expansion:g} takes more than some seconds: take at most {int(MOST / step)} steps, "
            "or a smaller width."
        )


def _forms(parameters: Forms, generator: torch.Generator) -> list[Form]:
    """A gate makes three matrices of two: two thirds of the width give the same number of parameters."""
    plain = max(1, round(parameters.expansion * parameters.width))
    gated = max(1, round(2 * plain / 3))
    configs = {
        "ReLU": FeedForwardConfig(plain, "relu", gated=False, bias=False),
        "GELU": FeedForwardConfig(plain, "gelu", gated=False, bias=False),
        "SwiGLU": FeedForwardConfig(gated, "silu", gated=True, bias=False),
    }
    forms = [Form(name, FeedForward(parameters.width, config)) for name, config in configs.items()]
    for form in forms:
        for weight in form.layer.parameters():
            weight.data.normal_(0, weight.shape[1] ** -0.5, generator=generator)
    return forms


def _hidden(layer: FeedForward, x: Tensor) -> Tensor:
    """The hidden layer of x [1, T, D], [T, F]."""
    with torch.no_grad():
        up = layer.up(x[0])  # [T, F]
        return layer.activation(up) if layer.gate is None else layer.activation(layer.gate(x[0])) * up


def _histogram(hidden: dict[str, Tensor]) -> Chart:
    lines = []
    for name, values in hidden.items():
        scaled = (values / values.square().mean().sqrt()).flatten()
        counts, edges = torch.histogram(scaled, bins=BINS, range=(-3.0, 3.0))
        lines.append(Line(name, (edges[1:] + edges[:-1]) / 2, counts / scaled.numel()))
    axes = Axis("activation, in units of its root mean square"), Axis("share of the neurons", log=True)
    return Chart("hidden", "What stands in the hidden layer, for random inputs", *axes, lines)


def _row(form: Form, hidden: Tensor) -> dict[str, object]:
    scale = hidden.square().mean().sqrt()
    return {
        "form": form.name,
        "matrices": len(list(form.layer.parameters())),
        "hidden width F": form.layer.up.out_features,
        "F / D": form.layer.up.out_features / form.layer.up.in_features,
        "parameters": form.parameters,
        "exactly 0, %": 100 * (hidden == 0).float().mean().item(),
        "nearly silent, %": 100 * (hidden.abs() < SILENT * scale).float().mean().item(),
    }


def _sizes(forms: list[Form]) -> list[Check]:
    """Parameters against 2 D F and 3 D F, and against each other up to the rounding of F."""
    checks = []
    for form in forms:
        width, hidden = form.layer.up.in_features, form.layer.up.out_features
        matrices = 2 if form.layer.gate is None else 3
        checks.append(
            Check(f"{form.name}: parameters, {matrices} D F", matrices * width * hidden, form.parameters)
        )
    width = forms[0].layer.up.in_features
    checks.append(Check("SwiGLU has as many as ReLU", forms[0].parameters, forms[-1].parameters, 1.5 * width))
    return checks


def _positions(forms: list[Form], x: Tensor) -> list[Check]:
    """Another token in place 0 must leave what the layer makes of all others as it was."""
    changed = torch.cat((-x[:, :1], x[:, 1:]), dim=1)  # [1, T, D]
    checks = []
    for form in forms:
        with torch.no_grad():
            moved = (form.layer(x) - form.layer(changed))[0].abs().amax(dim=-1)  # [T]
        checks.append(
            Check(
                f"{form.name}: change of other positions when one token changes",
                0,
                moved[1:].max().item(),
                1e-5,
                "<=",
            )
        )
    return checks


def _task(parameters: Forms) -> Tensor:
    """Two random projections A, B [2, D, D]: the task is y = A x · B x, component by component."""
    generator = torch.Generator().manual_seed((parameters.seed + 1) % 2**32)
    projections = torch.randn(2, parameters.width, parameters.width, generator=generator)
    return projections / math.sqrt(parameters.width)


def _train(
    form: Form, task: Tensor, parameters: Forms, losses: list[float], lasts: list[LastStep]
) -> Iterator[int]:
    """Adam on the mean squared error; the same batches for every form. Yields each step, noting the loss.

    The last step that is drawn is kept as well, to be computed once more.
    """
    layer, drawn = form.layer, parameters.steps - 1 - (parameters.steps - 1) % DRAWN
    generator = torch.Generator().manual_seed((parameters.seed + 2) % 2**32)
    optimizer = torch.optim.Adam(layer.parameters(), lr=RATE)
    for step in range(parameters.steps):
        x = torch.randn(1, BATCH, parameters.width, generator=generator)  # [1, T, D]
        loss = (layer(x) - (x @ task[0].T) * (x @ task[1].T)).square().mean()
        if step == drawn:
            weights = {name: weight.detach().clone() for name, weight in layer.named_parameters()}
            lasts.append(LastStep(form.name, weights, x[0], task))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % EVERY == 0:
            yield step


def _curves(losses: dict[str, list[float]]) -> list[Chart]:
    if not any(losses.values()):
        return []
    lines = [Line(name, list(range(0, len(loss), DRAWN)), loss[::DRAWN]) for name, loss in losses.items()]
    return [Chart("training", "Learning one task", Axis("step"), Axis("mean squared error", log=True), lines)]


def _ends(losses: dict[str, list[float]]) -> dict[str, float | None]:
    return {name: loss[-1] if loss else None for name, loss in losses.items()}


def _notes(losses: dict[str, list[float]]) -> list[str]:
    task = "The task is a product of two projections of the input, which a gate computes by its nature."
    return (
        [f"{task} It shows what a gate can do, not that it is better at language."]
        if any(losses.values())
        else []
    )
