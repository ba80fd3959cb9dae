"""Rotary positions in a real model: its own q and k, turned back and moved elsewhere (Su et al. 2021)."""

import torch
from torch import Tensor

from model.config import Rope
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.rope import RopeModel
from model.labs.reading import Ran, limits_of, read, run_ids
from model.labs.real_pair import RealPair, real_pair
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import counted, span
from model.trace import SiteTrace

POINTS = 256
# The same text elsewhere: every layer before adds its own rounding, measured up to 1e-6 of |q||k|.
ELSEWHERE = 1e-4


def run(parameters: RopeModel, bench: Bench) -> Result:
    """Score of a real query and key, moved together and apart. Raises InputError without rotary positions."""
    loaded = bench.model(parameters.model)
    if not isinstance(loaded.config.stack.position, Rope):
        raise InputError(
            f"{parameters.model} does not turn its q and k by position: choose smollm2 or another that does."
        )
    text = read(loaded, parameters.model, parameters.text)
    bench.report(0.1, f"running {parameters.model} at its own positions", None)
    ran = Ran(loaded, text, run_ids(loaded, text, record=("resid",)))
    _refuse(ran, parameters)
    pair, site = real_pair(ran, parameters)
    charts = [_moved(pair, parameters), _by_distance(pair, parameters)]
    facts = _facts(ran, pair, site, parameters)
    last = len(text.ids) - 1
    limits = {**limits_of(loaded, "layer", "head"), "query": last, "key": last}
    so_far = Result(charts, _checks(pair, charts), facts, limits=limits)
    bench.report(0.5, f"running {parameters.model} {counted(parameters.shift, 'position')} on", so_far)
    elsewhere = run_ids(loaded, text, [{"kind": "set_position", "mode": "shift", "by": parameters.shift}])
    change = max(_change(ran.trace.sites[name], other) for name, other in elsewhere.sites.items())
    checks = [*so_far.checks, *_elsewhere(pair, parameters, charts[0], elsewhere.sites[site.site])]
    whole = Check(
        f"all weights of the model, everything moved by {parameters.shift}: largest change",
        0.0,
        change,
        1e-3,
        about="moved",
    )
    return Result(charts, [*checks, whole], {**facts, "weights_change": change}, limits=limits)


def _refuse(ran: Ran, parameters: RopeModel) -> None:
    stack = ran.loaded.config.stack
    for name, given, count in (
        ("layer", parameters.layer, stack.layers), ("head", parameters.head, stack.attention.heads),
        ("query", parameters.query, len(ran.labels)), ("key", parameters.key, len(ran.labels)),
    ):  # fmt: skip
        if given >= count:
            raise InputError(f"{name} is {given}, which is not among {span(count)}: choose another.")


def _steps(first: int, last: int) -> Tensor:
    count = min(last - first + 1, POINTS)
    return torch.linspace(first, last, count, dtype=torch.float64).round().long()


def _moved(pair: RealPair, parameters: RopeModel) -> Chart:
    q, k = pair.unturned()
    steps = _steps(0, parameters.shift)
    here, there = pair.moved(q, pair.m + steps), pair.moved(k, pair.n + steps)  # [N, K]
    lines = [
        Line("both moved", steps, (here * there).sum(-1) * pair.scale),
        Line("only the query moved", steps, here @ pair.k * pair.scale),
    ]
    title = f"One real score, L{parameters.layer}H{parameters.head}, as its query and key move on"
    return Chart("moved", title, Axis("moved by, in positions"), Axis("score q·k · scale"), lines)


def _by_distance(pair: RealPair, parameters: RopeModel) -> Chart:
    q, k = pair.unturned()
    actual = pair.m - pair.n
    distances = _steps(min(0, actual), max(actual, parameters.shift))
    distances = torch.tensor(sorted({*distances.tolist(), actual}))  # [N]
    lines = [
        Line("this query and this key", distances, pair.moved(q, distances) @ k * pair.scale),
        Line("by the formula", distances, pair.by_formula(distances) * pair.scale, "theory"),
        Line("in this text", [actual], [pair.score * pair.scale]),
    ]
    title = "The same query and key at every distance"
    return Chart("distance", title, Axis("m − n, in positions"), Axis("score q·k · scale"), lines)


def _checks(pair: RealPair, charts: list[Chart]) -> list[Check]:
    scale, rounding = pair.scale, pair.rounding * pair.size * abs(pair.scale)
    together = torch.as_tensor(charts[0].lines[0].y)
    drawn, theory = (torch.as_tensor(line.y) for line in charts[1].lines[:2])
    place = torch.as_tensor(charts[1].lines[0].x).tolist().index(pair.m - pair.n)
    # Turned on and back by up to 4096 + 100,000 positions in fp64: 1e-11 of the size.
    drift = (together - together[0]).abs().max().item() / (pair.size * abs(scale))
    formula = pair.by_formula(torch.tensor([pair.m - pair.n])).item() * scale
    return [
        Check("this text's score, by the formula from q and k before they were turned", formula,
              pair.score * scale, rounding),
        Check("curve at this text's distance, by the run's own score", pair.score * scale,
              drawn[place].item(), rounding, origin="measured", about="distance"),
        Check("curve and formula, largest difference at any distance", 0.0,
              (drawn - theory).abs().max().item(), rounding, about="distance"),
        Check("both moved: largest change of q·k, relative to |q||k|", 0.0, drift, 1e-9, about="moved"),
        Check("norm of q before it was turned, by the norm after", pair.q.norm().item(),
              pair.bare_q.norm().item(), rounding / abs(scale) / pair.k.norm().item(), about="moved"),
    ]  # fmt: skip


def _elsewhere(pair: RealPair, parameters: RopeModel, moved: Chart, there: SiteTrace) -> list[Check]:
    """The ends of both curves, against the model's own q and k in a run at shifted positions."""
    q = there.q[parameters.head, pair.m].double().cpu()  # [K]
    k = there.k[there.key_head(parameters.head), pair.n].double().cpu()  # [K]
    shift, off = parameters.shift, (ELSEWHERE + pair.rounding) * pair.size * abs(pair.scale)
    ends = [torch.as_tensor(line.y)[-1].item() for line in moved.lines]
    return [
        Check(f"{name} by {shift}, by the model's own run there", (q @ key).item() * pair.scale, end, off,
              origin="measured", about="moved")
        for name, key, end in zip(("both moved", "only the query moved"), (k, pair.k), ends, strict=True)
    ]  # fmt: skip


def _change(here: SiteTrace, there: SiteTrace) -> float:
    """The largest change of any weight of a site."""
    rows = range(here.queries)
    return (here.attention(here.all_heads, rows) - there.attention(there.all_heads, rows)).abs().max().item()


def _facts(ran: Ran, pair: RealPair, site: SiteTrace, parameters: RopeModel) -> dict[str, object]:
    head, query = range(parameters.head, parameters.head + 1), range(pair.m, pair.m + 1)
    masked = site.attention(head, query, "masked")[0, 0, pair.n]
    return {
        "model": parameters.model,
        "text": parameters.text, "query_token": ran.labels[pair.m].strip(),
        "key_token": ran.labels[pair.n].strip(),
        "m": pair.m, "n": pair.n, "distance": pair.m - pair.n, "hidden": not bool(masked.isfinite()),
        "layer": parameters.layer, "head": parameters.head, "shift": parameters.shift,
        "score": pair.score, "scaled": pair.score * pair.scale, "base": pair.rope.base,
        "score_unturned": pair.bare_q @ pair.bare_k,
        "norm_before": pair.bare_q.norm(), "norm_after": pair.q.norm(),
        "tokens": [{"token": place, "text": text} for place, text in enumerate(ran.labels)],
    }  # fmt: skip
