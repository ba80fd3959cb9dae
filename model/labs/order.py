"""Without positions attention does not know the order of words (Vaswani et al. 2017, section 3.5)."""

from collections import Counter

import torch

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.order_runs import BLIND, FIXED, Difference, Setting, difference
from model.labs.parameters.order import Order, Sight
from model.labs.reading import read
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.vectors import seen
from model.labs.words import counted, listed
from model.loading import LoadedModel
from model.rules import Bidirectional, Causal
from model.text import Encoded

# What is certainly more than rounding, also in fp32.
SEEN = 1e-2
# Each text runs up to six times.
MOST_TOKENS = 256


def run(parameters: Order, bench: Bench) -> Result:
    """Outputs of both orders, token by token. Raises InputError unless the tokens are the same."""
    loaded = bench.model(parameters.model)
    first = read(loaded, parameters.model, parameters.text, MOST_TOKENS)
    second = read(loaded, parameters.model, parameters.other, MOST_TOKENS)
    where = torch.tensor(partners(first, second))
    chosen = Setting(parameters.positions, _named(loaded, parameters.mask))
    settings = dict.fromkeys([chosen, *FIXED])
    found: dict[Setting, Difference] = {}
    for place, one in enumerate(settings):
        bench.report(place / len(settings), f"running both orders: {one.name}", None)
        found[one] = difference(loaded, (first, second), where, one, parameters.seed)
    facts = _facts(found[chosen], list(found.values()), parameters)
    same_order = first.ids == second.ids
    checks = [] if same_order else _checks(found, chosen)
    pairs = enumerate(zip(first.tokens, where.tolist(), strict=True))
    moved = [token.text.strip() for place, (token, to) in pairs if to != place]
    facts = {**facts, "same": same_order, "differ": not same_order, "moved": _named_tokens(moved)}
    notes = [] if same_order else _notes(first, found)
    return Result([_chart(first, found)], checks, facts, notes)


def _named_tokens(moved: list[str]) -> str:
    """The tokens that stand elsewhere, six at most by name."""
    distinct = list(dict.fromkeys(moved))
    names = [f"“{text}”" for text in distinct[:6]]
    if len(distinct) > len(names):
        names.append(counted(len(distinct) - len(names), "other"))
    return listed(names) or "no token"


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
        text = next(seen(token.text) for token in (*first.tokens, *second.tokens) if token.id == odd)
        which = "first" if missing else "second"
        raise InputError(
            f"The token “{text}” stands more often in the {which} text: give both the same tokens, in "
            "another order. A capital or a space before a word can make it another token."
        )
    seats: dict[int, list[int]] = {}
    for place, token_id in enumerate(second.ids):
        seats.setdefault(token_id, []).append(place)
    return [seats[token_id].pop(0) for token_id in first.ids]


def _chart(first: Encoded, found: dict[Setting, Difference]) -> Chart:
    tokens = [f"{place} {token.text}" for place, token in enumerate(first.tokens)]
    lines = [Line(one.name, tokens, one.by_token) for one in found.values()]
    title = "How far each token's output moves when the words change places"
    y = Axis("largest difference of its numbers", log=True)
    return Chart("difference", title, Axis("token of the first text"), y, lines, "bars")


def _checks(found: dict[Setting, Difference], chosen: Setting) -> list[Check]:
    """Three comparisons that are always made, and what is chosen where theory says something of it."""
    checks = []
    told = [one for one in (Setting("on", "bidirectional"), Setting("off", "causal"), chosen)
            if one.positions != "off" or one.mask == "causal"]  # fmt: skip
    if found[BLIND].exact:
        name = f"{found[BLIND].name}: largest difference"
        checks.append(Check(name, 0.0, found[BLIND].largest, found[BLIND].rounding))
    for setting in dict.fromkeys(told):
        name = f"{setting.name}: largest difference"
        checks.append(Check(name, SEEN, found[setting].largest, relation=">=", origin="estimate"))
    return checks


def _notes(first: Encoded, found: dict[Setting, Difference]) -> list[str]:
    notes = []
    causal = [one.by_token.tolist() for one in found.values() if one.setting.mask == "causal"]
    rows = zip(*causal, strict=True)
    still = [token.text.strip() for token, row in zip(first.tokens, rows, strict=True) if 0 in row]
    if still:
        notes.append(
            f"Under a causal mask {_named_tokens(still)} at the start can have a difference of exactly 0: "
            "what stands before is the same in both texts. A logarithmic axis has no bar for 0."
        )
    if not found[BLIND].exact:
        notes.append(
            "This model is too large to run in fp64 here: what is left without positions is the rounding of "
            "its own numbers, and nothing is claimed of it."
        )
    return notes


def _facts(chosen: Difference, every: list[Difference], parameters: Order) -> dict[str, object]:
    by_name = {f"{one.setting.positions}_{one.setting.mask}": one.largest for one in every}
    blind = chosen.largest <= chosen.rounding if chosen.exact else None
    return {
        **by_name, "apart": blind is False or chosen.setting != BLIND, "model": parameters.model,
        "largest": chosen.largest, "cosine": chosen.cosine, "setting": chosen.name,
        "text": parameters.text, "other": parameters.other, "tokens": len(chosen.by_token),
        "table": [
            {"positions": one.setting.positions, "mask": one.setting.mask, "numbers": "fp64" if one.exact else
             "the model's own", "largest difference": one.largest,
             "cosine of the mean outputs": one.cosine}
            for one in every
        ],
    }  # fmt: skip
