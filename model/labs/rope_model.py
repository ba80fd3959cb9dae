"""Rotary positions in a real model: its own q and k, turned back and moved elsewhere (Su et al. 2021)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import Rope
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.rope import RopeModel
from model.labs.reading import Ran, limits_of, read, run_ids
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import counted, span
from model.position import rotate, rotation
from model.trace import SiteTrace

POINTS = 256


@dataclass(frozen=True)
class Found:
    """One query and one key as the model turned them, [K] in fp64, and the positions they stood at."""

    rope: Rope
    q: Tensor
    k: Tensor
    m: int
    n: int
    scale: float

    def moved(self, x: Tensor, by: Tensor) -> Tensor:
        """Vector x [K] turned on by each of `by` [N] positions; negative ones turn it back: [N, K]."""
        turn = rotation(self.rope, by[None], torch.float64)
        return rotate(x.expand(1, 1, len(by), -1), turn)[0, 0]  # [N, K]

    def unturned(self) -> tuple[Tensor, Tensor]:
        """Both before they were turned, [K]."""
        return (
            self.moved(self.q, torch.tensor([-self.m]))[0],
            self.moved(self.k, torch.tensor([-self.n]))[0],
        )


def run(parameters: RopeModel, bench: Bench) -> Result:
    """Score of a real query and key, moved together and apart. Raises InputError without rotary positions."""
    loaded = bench.model(parameters.model)
    if not isinstance(loaded.config.stack.position, Rope):
        raise InputError(
            f"{parameters.model} does not turn its q and k by position: choose smollm2 or another that does."
        )
    text = read(loaded, parameters.model, parameters.text)
    bench.report(0.1, f"running {parameters.model} at its own positions", None)
    ran = Ran(loaded, text, run_ids(loaded, text))
    found, site = _find(ran, parameters)
    score = site.attention(range(parameters.head, parameters.head + 1), range(found.m, found.m + 1), "raw")[
        0, 0, found.n
    ].item()
    charts = [_moved(found, parameters), _by_distance(found, parameters)]
    facts = _facts(ran, found, parameters, score)
    last = len(text.ids) - 1
    limits = {**limits_of(loaded, "layer", "head"), "query": last, "key": last}
    so_far = Result(charts, _checks(found, parameters, score), facts, limits=limits)
    bench.report(0.5, f"running {parameters.model} {counted(parameters.shift, 'position')} on", so_far)
    elsewhere = run_ids(loaded, text, [{"kind": "set_position", "mode": "shift", "by": parameters.shift}])
    change = max(_change(ran.trace.sites[name], other) for name, other in elsewhere.sites.items())
    whole = Check(
        f"all weights of the model, everything moved by {parameters.shift}: largest change",
        0.0,
        change,
        1e-3,
        about="moved",
    )
    return Result(charts, [*so_far.checks, whole], {**facts, "weights_change": change}, limits=limits)


def _find(ran: Ran, parameters: RopeModel) -> tuple[Found, SiteTrace]:
    stack = ran.loaded.config.stack
    assert isinstance(stack.position, Rope)
    for name, given, count in (
        ("layer", parameters.layer, stack.layers), ("head", parameters.head, stack.attention.heads),
        ("query", parameters.query, len(ran.labels)), ("key", parameters.key, len(ran.labels)),
    ):  # fmt: skip
        if given >= count:
            raise InputError(f"{name} is {given}, which is not among {span(count)}: choose another.")
    name = stack.self_sites[parameters.layer]
    site = ran.trace.sites[name]
    q = site.q[parameters.head, parameters.query].double().cpu()  # [K]
    k = site.k[site.key_head(parameters.head), parameters.key].double().cpu()  # [K]
    return Found(
        stack.position, q, k, parameters.query, parameters.key, ran.loaded.config.scale_of(name)
    ), site


def _steps(farthest: int) -> Tensor:
    return torch.linspace(0, farthest, min(farthest + 1, POINTS), dtype=torch.float64).round().long()


def _moved(found: Found, parameters: RopeModel) -> Chart:
    q, k = found.unturned()
    steps = _steps(parameters.shift)
    here, there = found.moved(q, found.m + steps), found.moved(k, found.n + steps)  # [N, K]
    lines = [
        Line("both moved", steps, (here * there).sum(-1) * found.scale),
        Line("only the query moved", steps, here @ found.k * found.scale),
    ]
    title = f"One real score, L{parameters.layer}H{parameters.head}, as its query and key move on"
    return Chart("moved", title, Axis("moved by, in positions"), Axis("score q·k · scale"), lines)


def _by_distance(found: Found, parameters: RopeModel) -> Chart:
    q, k = found.unturned()
    distances = _steps(parameters.shift)
    lines = [Line("this query and this key", distances, found.moved(q, distances) @ k * found.scale)]
    title = "The same query and key at every distance"
    return Chart("distance", title, Axis("m − n, in positions"), Axis("score q·k · scale"), lines)


def _checks(found: Found, parameters: RopeModel, score: float) -> list[Check]:
    q, k = found.unturned()
    steps = _steps(parameters.shift)
    here, there = found.moved(q, found.m + steps), found.moved(k, found.n + steps)  # [N, K]
    scores = (here * there).sum(-1)
    drift = (scores - scores[0]).abs().max().item()
    size = (q.norm() * k.norm()).item()
    norms = here.norm(dim=-1) / found.q.norm()
    return [
        Check(
            "both moved: largest change of q·k, relative to |q||k|", 0.0, drift / size, 1e-9, about="moved"
        ),
        Check(
            "q·k turned back and on again, against the run's own",
            score,
            scores[0].item(),
            1e-5 * size,
            origin="measured",
        ),
        Check(
            "norm of q after by before, farthest from 1",
            1.0,
            norms[(norms - 1).abs().argmax()].item(),
            1e-12,
            about="moved",
        ),
    ]


def _change(here: SiteTrace, there: SiteTrace) -> float:
    """The largest change of any weight of a site."""
    rows = range(here.queries)
    return (here.attention(here.all_heads, rows) - there.attention(there.all_heads, rows)).abs().max().item()


def _facts(ran: Ran, found: Found, parameters: RopeModel, score: float) -> dict[str, object]:
    q, k = found.unturned()
    return {
        "text": parameters.text, "query_token": ran.labels[found.m].strip(),
        "key_token": ran.labels[found.n].strip(),
        "m": found.m, "n": found.n,
        "layer": parameters.layer, "head": parameters.head, "shift": parameters.shift,
        "score": score, "scaled": score * found.scale, "score_unturned": q @ k, "base": found.rope.base,
        "norm_before": q.norm(), "norm_after": found.q.norm(),
        "tokens": [{"token": place, "text": text} for place, text in enumerate(ran.labels)],
    }  # fmt: skip
