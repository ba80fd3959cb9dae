"""A recurrent net takes a step after another, attention one for all (Vaswani et al. 2017, table 1)."""

import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.merged import merged
from model.labs.nets import ATTENDING, MATRICES, NETS, RECURRENT, Net, Recurrent, build, inputs
from model.labs.parameters.recurrence import Recurrence
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.steps import Work, work
from model.labs.words import listed

# Runs of more multiply-adds than this are left to the formula: a picture should not wait for them.
MOST_COUNTED = 20_000_000
NARROW = 4
POSITIONS = Axis("positions n", log=True)

Works = dict[Net, dict[int, Work]]


def run(parameters: Recurrence, _bench: Bench) -> Result:
    """The longest chain of steps, and the operations, against the length of the sequence."""
    lengths, width = powers(parameters.length), parameters.width
    counted = count(parameters, lengths)
    steps = [Line(net, lengths, [float(counted[net][length].steps) for length in lengths]) for net in NETS]
    return Result(
        [
            Chart(
                "steps", "Steps that wait for each other", POSITIONS, Axis("steps", log=True), merged(steps)
            ),
            _operations(lengths, counted, width),
            _dominant(lengths, width),
        ],
        _checks(parameters, lengths, counted),
        _facts(parameters, {net: counted[net][lengths[-1]].steps for net in NETS}),
    )


def powers(longest: int) -> list[int]:
    """1, 2, 4 … below `longest`, and `longest`."""
    return [1 << i for i in range((longest - 1).bit_length())] + [longest]


def formula(net: Net, length: int, width: int) -> int:
    """Multiply-adds of one layer: n·d² for each matrix of weights, n²·d for each of QKᵀ and the mixture."""
    mixing = 2 * length**2 * width if net in ATTENDING else 0
    return MATRICES[net] * length * width**2 + mixing


def count(parameters: Recurrence, lengths: list[int]) -> Works:
    """The work of each net at each length, in a narrow net where the wide one would take long."""
    found: Works = {net: {} for net in NETS}
    for net in NETS:
        for length in lengths:
            width = parameters.width if _affordable(net, length, parameters.width) else NARROW
            x = inputs(1, length, width, parameters.seed)
            found[net][length] = work(build(net, width, parameters.seed), x)
    return found


def follows_formula(width: int, length: int, seed: int) -> float:
    """The largest difference between torch.nn.RNN and h_t = tanh(W_hh h_(t-1) + W_xh x_t + b), in float64."""
    net = build("RNN", width, seed)
    assert isinstance(net, Recurrent)
    x = inputs(1, length, width, seed + 1)
    weights = {name: value.detach() for name, value in net.layer.named_parameters()}
    bias = weights["bias_ih_l0"] + weights["bias_hh_l0"]  # torch keeps b in two parts
    state, states = torch.zeros(width, dtype=torch.float64), []
    for step in x[0]:
        state = torch.tanh(weights["weight_hh_l0"] @ state + weights["weight_ih_l0"] @ step + bias)  # [D]
        states.append(state)
    ours: Tensor = torch.stack(states)  # [T, D]
    return float((net(x)[0].detach() - ours).abs().max())


def _affordable(net: Net, length: int, width: int) -> bool:
    return formula(net, length, width) <= MOST_COUNTED


def _operations(lengths: list[int], counted: Works, width: int) -> Chart:
    lines = []
    for net in NETS[:4]:
        within = [length for length in lengths if _affordable(net, length, width)]
        lines.append(Line(net, within, [float(counted[net][length].multiply_adds) for length in within]))
        if within != lengths:
            theory = [float(formula(net, length, width)) for length in lengths]
            lines.append(Line(f"{net}, formula", lengths, theory, "theory"))
    title = f"Multiply-adds of one layer, d = {width}"
    title += "; the longest runs by the formula alone" if _beyond(lengths, width) else ""
    return Chart("operations", title, POSITIONS, Axis("multiply-adds", log=True), lines)


def _dominant(lengths: list[int], width: int) -> Chart:
    # The crossing at n = d is in the picture even where the sequences are shorter.
    reach = sorted({*lengths, width, 4 * width})
    return Chart(
        "dominant",
        f"The terms of table 1, d = {width}",
        POSITIONS,
        Axis("operations", log=True),
        [
            Line("recurrent, n·d²", reach, [float(n * width**2) for n in reach], "theory"),
            Line("self-attention, n²·d", reach, [float(n**2 * width) for n in reach], "theory"),
        ],
    )


def _checks(parameters: Recurrence, lengths: list[int], counted: Works) -> list[Check]:
    longest, width = parameters.length, parameters.width
    expected = {net: longest if net in RECURRENT else 1 for net in NETS}
    steps = [
        Check(f"{net}: steps at n = {longest}", expected[net], counted[net][longest].steps, about="steps")
        for net in NETS
    ]
    operations = []
    for net in NETS[:4]:
        within = [length for length in lengths if _affordable(net, length, width)]
        if within:
            name = f"{net}: multiply-adds counted at n = {within[-1]}"
            made = counted[net][within[-1]].multiply_adds
            operations.append(Check(name, formula(net, within[-1], width), made, about="operations"))
    apart = follows_formula(min(width, 64), min(longest, 64), parameters.seed)
    return [Check("torch.nn.RNN minus the formula", 0.0, apart, 1e-12, about="steps"), *steps, *operations]


def _facts(parameters: Recurrence, steps: dict[Net, int]) -> dict[str, object]:
    length, width = parameters.length, parameters.width
    return {
        "length": length,
        "width": width,
        "steps": {"recurrent": steps["RNN"], "attention": steps["self-attention"]},
        "beyond": _beyond(powers(length), width),
        "recurrent_term": length * width**2,
        "attention_term": length**2 * width,
        "fewer": "neither"
        if length == width
        else "self-attention"
        if length < width
        else "the recurrent net",
        "table": [
            {
                "net": net,
                "steps in turn": steps[net],
                "multiply-adds": formula(net, length, width),
                "as a formula": f"{MATRICES[net]}·n·d²" + (" + 2·n²·d" if net in ATTENDING else ""),
            }
            for net in NETS
        ],
        "operations_cross": [
            {"net": net, "self-attention needs fewer": _fewer_below(net, width)} for net in RECURRENT
        ],
    }


def _fewer_below(net: Net, width: int) -> str:
    """Where attention needs fewer multiply-adds: m·n·d² > 4·n·d² + 2·n²·d for n < (m - 4)·d/2."""
    crossing = (MATRICES[net] - MATRICES["self-attention"]) * width / 2
    return f"below n = {crossing:g}" if crossing > 1 else "at no length"


def _beyond(lengths: list[int], width: int) -> str:
    """Which nets' operations are counted at shorter lengths only."""
    return listed([net for net in NETS[:4] if not _affordable(net, lengths[-1], width)])
