"""Without positions attention does not know the order of words (Vaswani et al. 2017, section 3.5)."""

from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.order import Order, Sight, Told
from model.labs.reading import read, run_ids
from model.labs.result import Axis, Chart, Check, Line, Result
from model.loading import LoadedModel
from model.rules import Bidirectional, Causal
from model.text import Encoded
from model.trace import Trace

# What rounding may leave of a difference that is zero: this, or a share of the outputs for each layer.
ROUNDING, A_LAYER = 1e-5, 2.5e-7
# What is certainly more than rounding.
SEEN = 1e-3


@dataclass(frozen=True)
class Setting:
    """What a model is told of positions and which tokens its tokens see."""

    positions: Told
    mask: Sight

    def plan(self, seed: int) -> list[dict[str, object]]:
        """The setting as a plan's JSON."""
        steps: list[dict[str, object]] = []
        if self.positions != "on":
            mode = "off" if self.positions == "off" else "shuffle"
            steps.append({"kind": "set_position", "mode": mode, "seed": seed if mode == "shuffle" else 0})
        if self.mask != "own":
            steps.append({"kind": "set_mask", "rule": {"name": self.mask}})
        return steps

    @property
    def name(self) -> str:
        """The setting in words."""
        return f"positions {self.positions}, {self.mask} mask"


@dataclass(frozen=True)
class Difference:
    """How far both orders end apart, token by token of the first, and how alike their means are."""

    setting: Setting
    by_token: Tensor
    largest_output: float
    cosine: float

    @property
    def largest(self) -> float:
        """The largest difference of any number of any token's output."""
        return self.by_token.max().item()


def run(parameters: Order, bench: Bench) -> Result:
    """Outputs of both orders, token by token. Raises InputError unless the tokens are the same."""
    loaded = bench.model(parameters.model)
    first = read(loaded, parameters.model, parameters.text)
    second = read(loaded, parameters.model, parameters.other)
    where = torch.tensor(partners(first, second))
    chosen = Setting(parameters.positions, _named(loaded, parameters.mask))
    settings = dict.fromkeys(
        [chosen, Setting("on", "bidirectional"), Setting("off", "bidirectional"), Setting("off", "causal"),
         Setting("shuffled", "bidirectional")]
    )  # fmt: skip
    found = {one: _difference(loaded, (first, second), where, one, parameters.seed) for one in settings}
    same_order = first.ids == second.ids
    checks = [] if same_order else _checks(found, loaded.config.stack.layers)
    notes = ["Both texts are the same, so there is nothing to tell apart."] if same_order else []
    return Result(
        [_chart(first, found)], checks, _facts(found[chosen], list(found.values()), parameters), notes
    )


def _named(loaded: LoadedModel, mask: Sight) -> Sight:
    """The model's own mask by its name, where it has one of those that are compared."""
    match loaded.config.stack.mask:
        case Bidirectional() if mask == "own":
            return "bidirectional"
        case Causal() if mask == "own":
            return "causal"
        case _:
            return mask


def partners(first: Encoded, second: Encoded) -> list[int]:
    """Where each token of the first text stands in the second. Raises InputError where the tokens differ."""
    missing, added = Counter(first.ids) - Counter(second.ids), Counter(second.ids) - Counter(first.ids)
    if missing or added:
        odd = next(iter(missing or added))
        text = next(token.text for token in (*first.tokens, *second.tokens) if token.id == odd)
        which = "first" if missing else "second"
        raise InputError(
            f"The token “{text}” stands more often in the {which} text: give both the same tokens, in "
            "another order (capitals and spaces can make a token another one)."
        )
    seats: dict[int, list[int]] = {}
    for place, token_id in enumerate(second.ids):
        seats.setdefault(token_id, []).append(place)
    return [seats[token_id].pop(0) for token_id in first.ids]


def _difference(
    loaded: LoadedModel, texts: tuple[Encoded, Encoded], where: Tensor, setting: Setting, seed: int
) -> Difference:
    runs: list[Trace] = [run_ids(loaded, text, setting.plan(seed)) for text in texts]
    a, b = (ran.final.float().cpu() for ran in runs)  # [T, D]
    by_token = (a - b[where]).abs().amax(-1)  # [T]
    cosine = torch.nn.functional.cosine_similarity(a.mean(0), b.mean(0), dim=0).item()
    return Difference(setting, by_token, a.abs().max().item(), cosine)


def _chart(first: Encoded, found: dict[Setting, Difference]) -> Chart:
    tokens = [f"{place} {token.text}" for place, token in enumerate(first.tokens)]
    lines = [Line(setting.name, tokens, difference.by_token) for setting, difference in found.items()]
    title = "How far each token's output moves when the words change places"
    y = Axis("largest difference of its numbers", log=True)
    return Chart("difference", title, Axis("token of the first text"), y, lines, "bars")


def _checks(found: dict[Setting, Difference], layers: int) -> list[Check]:
    blind, sees = found[Setting("off", "bidirectional")], found[Setting("on", "bidirectional")]
    leaks = found[Setting("off", "causal")]
    rounding = max(ROUNDING, A_LAYER * layers * blind.largest_output)
    return [
        Check("positions off, bidirectional: largest difference", 0.0, blind.largest, rounding),
        Check("positions on: largest difference", SEEN, sees.largest, relation=">="),
        Check("positions off, causal mask: largest difference", SEEN, leaks.largest, relation=">="),
    ]


def _facts(chosen: Difference, every: list[Difference], parameters: Order) -> dict[str, object]:
    by_name = {f"{one.setting.positions}_{one.setting.mask}": one.largest for one in every}
    return {
        **by_name, "largest": chosen.largest, "cosine": chosen.cosine, "setting": chosen.setting.name,
        "text": parameters.text, "other": parameters.other, "tokens": len(chosen.by_token),
        "table": [
            {"positions": one.setting.positions, "mask": one.setting.mask, "largest difference": one.largest,
             "cosine of the mean outputs": one.cosine}
            for one in every
        ],
    }  # fmt: skip
