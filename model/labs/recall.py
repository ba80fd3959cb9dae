"""Recall across a gap, trained here and now: a symbol, then noise, then the question which symbol it was.

The task is the shortest form of the long-lag problems of Hochreiter and Schmidhuber 1997, section 5.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.jacobians import by_distance
from model.labs.nets import Net, build, open_gates
from model.labs.parameters.recurrence import MOST_GAP, MOST_STEPS, Recall
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import counted

RACING: tuple[Net, ...] = ("RNN", "LSTM", "GRU", "self-attention")
NOISE = 8
BATCH = 32
ASKED = 512
RATE = 0.01
# Training steps × positions of all gaps: some twenty seconds on two cores.
MOST = 40_000
# Longer gaps need longer training: judged is who trained so many times as long as the shortest gap took.
TIMES_AS_LONG = 8
# Less of a gradient than this is far below float32's steps beside the rest of it, 2⁻²⁴, even when
# the training that this lab allows has made it grow.
LOST = 2.0**-46
# A picture of the race so far is sent every so many training steps.
PICTURE_STEPS = 10


class Reader(nn.Module):
    """Embedding, one layer, and a guess at the symbol from the layer's last output."""

    def __init__(self, kind: Net, parameters: Recall) -> None:
        super().__init__()
        width = parameters.width
        generator = torch.Generator().manual_seed(parameters.seed)
        table = torch.randn(parameters.symbols + NOISE + 1, width, generator=generator)
        self.table = nn.Parameter(table)
        self.layer = build(kind, width, parameters.seed, fused=True).float()
        open_gates(self.layer, parameters.keep_bias)
        self.head = nn.Linear(width, parameters.symbols)
        with torch.no_grad():
            self.head.weight.uniform_(-(width**-0.5), width**-0.5, generator=generator)
            self.head.bias.zero_()

    def forward(self, ids: Tensor) -> Tensor:
        """Scores [B, symbols] for sequences of ids [B, T]."""
        scores: Tensor = self.head(self.layer(F.embedding(ids, self.table))[:, -1])  # [B, symbols]
        return scores


@dataclass
class Race:
    """What is known so far: the loss at each step of the gap in training, and the accuracy after each gap.

    `traced` is the share of the untrained RNN's gradient that reaches the symbol across the longest gap.
    """

    parameters: Recall
    gaps: list[int]
    gap: int = 0
    losses: dict[Net, list[float]] = field(default_factory=dict)
    learned_after: int | None = None
    traced: float | None = None
    accuracy: dict[Net, list[float]] = field(default_factory=lambda: {net: [] for net in RACING})


def run(parameters: Recall, bench: Bench) -> Result:
    """Accuracy after the same training, against the gap. Raises InputError where it would take long."""
    race = Race(parameters, gaps(parameters.longest_gap))
    needed = parameters.steps * sum(gap + 2 for gap in race.gaps)
    if needed > MOST:
        raise InputError(
            f"{counted(parameters.steps, 'training step')} at gaps up to {parameters.longest_gap} would take "
            f"long: take fewer steps or a shorter gap, so that steps × positions of all gaps, now {needed}, "
            f"is at most {MOST}."
        )
    race.traced = _traced(parameters)
    for gap in race.gaps:
        _train(race, gap, bench)
    return result(race)


def _traced(parameters: Recall) -> float:
    """‖∂ output / ∂ symbol‖ over ‖∂ output / ∂ question‖ of the RNN that starts the longest gap."""
    reader = Reader("RNN", parameters).double()
    generator = torch.Generator().manual_seed(parameters.seed)
    ids = questions(1, parameters.longest_gap, parameters.symbols, generator)
    with torch.inference_mode(mode=False), torch.enable_grad():
        norms = by_distance(reader.layer, F.embedding(ids, reader.table).detach())  # [T]
    return (norms[-1] / norms[0]).item()


def gaps(longest: int) -> list[int]:
    """1, 4, 16 … below `longest`, and `longest`."""
    return sorted({gap for gap in (1, 4, 16, 64) if gap < longest} | {longest})


def questions(batch: int, gap: int, symbols: int, generator: torch.Generator) -> Tensor:
    """Sequences of ids [B, gap + 2]: a symbol, noise, and the question mark, which has the last id."""
    first = torch.randint(symbols, (batch, 1), generator=generator)
    noise = torch.randint(symbols, symbols + NOISE, (batch, gap), generator=generator)
    question = torch.full((batch, 1), symbols + NOISE)
    return torch.cat([first, noise, question], dim=1)  # [B, gap + 2]


def _train(race: Race, gap: int, bench: Bench) -> None:
    """Trains all nets side by side on the same sequences, then asks each the same fresh ones."""
    parameters = race.parameters
    generator = torch.Generator().manual_seed(parameters.seed)
    nets = {net: Reader(net, parameters) for net in RACING}
    optimizers = {net: torch.optim.Adam(reader.parameters(), RATE) for net, reader in nets.items()}
    race.gap, race.losses = gap, {net: [] for net in RACING}
    for step in range(parameters.steps):
        ids = questions(BATCH, gap, parameters.symbols, generator)
        for net in RACING:
            _tell(race, step, net, bench)
            race.losses[net].append(_improve(nets[net], optimizers[net], ids))
    if gap == race.gaps[0]:
        race.learned_after = _learned_after(race)
    asked = questions(ASKED, gap, parameters.symbols, generator)
    for net, reader in nets.items():
        with torch.no_grad():
            right = reader(asked).argmax(dim=-1) == asked[:, 0]  # [B]
        race.accuracy[net].append(right.double().mean().item())


def _learned_after(race: Race) -> int | None:
    """The step at which attention's loss first fell below half that of guessing; None: it never did."""
    half = math.log(race.parameters.symbols) / 2
    losses = race.losses["self-attention"]
    return next((step + 1 for step, loss in enumerate(losses) if loss < half), None)


def _improve(reader: Reader, optimizer: torch.optim.Optimizer, ids: Tensor) -> float:
    loss = F.cross_entropy(reader(ids), ids[:, 0])
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def _tell(race: Race, step: int, net: Net, bench: Bench) -> None:
    """Reports before each step of each net, so that a reader who leaves stops the training there."""
    positions = [gap + 2 for gap in race.gaps]
    done = sum(positions[: race.gaps.index(race.gap)]) + positions[race.gaps.index(race.gap)] * (
        (step + RACING.index(net) / len(RACING)) / race.parameters.steps
    )
    picture = step > 0 and step % PICTURE_STEPS == 0 and net == RACING[0]
    words = f"gap {race.gap}, step {step + 1} of {race.parameters.steps}, {net}"
    bench.report(done / sum(positions), words, result(race) if picture else None)


def result(race: Race) -> Result:
    """What a page can show of a race, over or not."""
    done = race.gaps[: len(race.accuracy["RNN"])]
    chance = 1 / race.parameters.symbols
    trained = counted(race.parameters.steps, "training step")
    accuracy = Chart(
        "accuracy",
        f"Share of {ASKED} fresh questions answered right after {trained}",
        Axis("gap, positions of noise", log=True),
        Axis("accuracy"),
        [
            *(Line(net, done, race.accuracy[net]) for net in RACING),
            Line("guessing", race.gaps, [chance] * len(race.gaps), "theory"),
        ],
    )
    return Result(
        [accuracy, _curves(race)], _checks(race, done), _facts(race, done), _notes(race, done), _limits(race)
    )


def _limits(race: Race) -> dict[str, int]:
    """The most steps beside this gap, and the longest gap beside so many steps."""
    steps = MOST // sum(gap + 2 for gap in race.gaps)
    within = [
        gap for gap in range(1, MOST_GAP + 1) if race.parameters.steps * sum(g + 2 for g in gaps(gap)) <= MOST
    ]
    return {"steps": min(MOST_STEPS, steps), "longest_gap": within[-1]}


def _curves(race: Race) -> Chart:
    steps = list(range(1, race.parameters.steps + 1))
    drawn = steps[:: max(1, math.ceil(len(steps) / 250))]
    guessing = [math.log(race.parameters.symbols)] * 2
    lines = [
        Line(net, within, [losses[step - 1] for step in within])
        for net, losses in race.losses.items()
        if (within := [step for step in drawn if step <= len(losses)])
    ]
    return Chart(
        "loss",
        f"Loss in training, at gap {race.gap}",
        Axis("training step"),
        Axis("cross-entropy, nats"),
        [*lines, Line("guessing, ln of the symbols", [steps[0], steps[-1]], guessing, "theory")],
    )


def _trained(race: Race) -> bool:
    """Whether attention learned the shortest gap, more than halfway from guessing to all right, early on."""
    halfway = (1 + 1 / race.parameters.symbols) / 2
    soon = race.learned_after is not None and race.parameters.steps >= TIMES_AS_LONG * race.learned_after
    return soon and race.accuracy["self-attention"][0] > halfway


def _compared(race: Race, done: Sequence[int]) -> bool:
    return len(done) > 1 and done == race.gaps


def _checks(race: Race, done: Sequence[int]) -> list[Check]:
    if not _compared(race, done) or not _trained(race):
        return []
    # Four standard errors of a share of the questions asked, at its widest.
    tolerance = 4 * math.sqrt(0.25 / ASKED)
    blind = [] if race.traced is None or race.traced >= LOST else [_blind(race, done[-1])]
    near, far = race.accuracy["self-attention"][0], race.accuracy["self-attention"][-1]
    name = f"self-attention: as good at gap {done[-1]} as at {done[0]}"
    return [Check(name, near, far, tolerance, ">=", "estimate", "accuracy"), *blind]


def _blind(race: Race, gap: int) -> Check:
    """An RNN whose gradient is lost in rounding before it reaches the symbol can only guess."""
    chance = 1 / race.parameters.symbols
    tolerance = 4.5 * math.sqrt(chance * (1 - chance) / ASKED)
    name = f"RNN at gap {gap}, whose gradient is lost on the way: no better than guessing"
    return Check(name, chance, race.accuracy["RNN"][-1], tolerance, "<=", about="accuracy")


def _facts(race: Race, done: list[int]) -> dict[str, object]:
    keys = {"RNN": "rnn", "LSTM": "lstm", "GRU": "gru", "self-attention": "attention"}
    facts: dict[str, object] = {
        "chance": 1 / race.parameters.symbols,
        "symbols": race.parameters.symbols,
        "questions": ASKED,
        "table": [
            {"gap": gap, **{net: race.accuracy[net][i] for net in RACING}} for i, gap in enumerate(done)
        ],
    }
    if done:
        facts["gap"] = done[-1]
        facts["last"] = {keys[net]: race.accuracy[net][-1] for net in RACING}
    return facts


def _notes(race: Race, done: Sequence[int]) -> list[str]:
    notes = ["The symbols occur nowhere in the noise, so attention finds them without knowing positions."]
    if _compared(race, done) and not _trained(race):
        notes.append("Self-attention: not trained far enough to be judged. Take more steps.")
    if race.parameters.steps > 250:
        notes.append("The loss is drawn at evenly spaced steps, at most 250 of them.")
    return notes
