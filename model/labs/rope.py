"""Rotary positions (Su et al. 2021): planes, scores by distance, norms, layouts, stretching."""

import torch
from torch import Tensor

from model.labs.bench import Bench
from model.labs.parameters.rope import RopeLab
from model.labs.result import Axis, Chart, Check, Line, Result, Series
from model.labs.turning import Turning

POINTS = 257
# How far from the first key the second one stands, to show that this changes nothing.
FAR = 1000
# Where Σ |S_j| has lost less than this at the farthest distance, nothing fades.
FADED = 0.9


def run(parameters: RopeLab, _bench: Bench) -> Result:
    """Scores of a random query and key wherever they stand. Raises InputError for what cannot be rotated."""
    turning = Turning.of(parameters)
    generator = torch.Generator().manual_seed(parameters.seed)
    q, k = torch.randn(2, parameters.d_k, generator=generator, dtype=torch.float64)
    by_distance, decay = _by_distance(turning, q, k, parameters), _decay(turning, parameters.length)
    series: list[Series] = [
        by_distance,
        _moved(turning, q, k, parameters),
        decay,
        _wavelengths(turning, parameters),
    ]
    checks = _checks(turning, q, k, parameters, (by_distance, decay))
    return Result(series, checks, _facts(turning, q, k, parameters), _notes(parameters))


def _sampled(length: int) -> Tensor:
    """0 … length, thinned out to what a curve shows."""
    count = min(length + 1, POINTS)
    return torch.linspace(0, length, count, dtype=torch.float64).round().long()


def _by_distance(turning: Turning, q: Tensor, k: Tensor, parameters: RopeLab) -> Chart:
    distances, near = _sampled(parameters.length), parameters.n
    lines = [
        Line(f"key at {place}", distances, turning.at(q, place + distances) @ turning.at(k, place))
        for place in (near, near + FAR)
    ]
    lines.append(Line("by m − n alone", distances, turning.closed_score(q, k, distances), "theory"))
    title = "Score of one query and one key by their distance"
    return Chart("distance", title, Axis("m − n, in positions"), Axis("score q·k"), lines)


def _moved(turning: Turning, q: Tensor, k: Tensor, parameters: RopeLab) -> Chart:
    m, n, steps = parameters.m, parameters.n, _sampled(parameters.length)
    together = (turning.at(q, m + steps) * turning.at(k, n + steps)).sum(-1)
    lines = [
        Line("both moved", steps, together),
        Line("only the query moved", steps, turning.at(q, m + steps) @ turning.at(k, n)),
    ]
    title = f"Moving on from m = {m} and n = {n}"
    return Chart("moved", title, Axis("moved by, in positions"), Axis("score q·k"), lines)


def _decay(turning: Turning, length: int) -> Chart:
    distances = _sampled(length)
    ones = torch.ones(turning.rope.width, dtype=torch.float64)
    same = turning.at(ones, distances) @ turning.at(ones, 0) / len(ones)
    phases = distances.double()[:, None] * turning.speeds  # [N, K/2]
    lines = [
        Line("query and key both ones", distances, same),
        Line("mean of cos((m − n) ω)", distances, phases.cos().mean(-1), "theory"),
        Line("Σ |S_j| by which the paper bounds scores", distances, turning.decay(distances), "theory"),
    ]
    title = "How far the planes agree, by distance"
    return Chart("decay", title, Axis("m − n, in positions"), Axis("relative to distance 0"), lines)


def _wavelengths(turning: Turning, parameters: RopeLab) -> Chart:
    planes = list(range(parameters.d_k // 2))
    plain = [2 * torch.pi * parameters.base ** (2 * i / parameters.d_k) for i in planes]
    scaled = 2 * torch.pi / turning.speeds
    lines = [
        Line("measured between positions 0 and 1", planes, turning.wavelengths()),
        Line("formula, stretched", planes, scaled, "theory"),
        Line("2π · base^(2i/d_k), not stretched", planes, plain, "theory"),
    ]
    title = "Positions that each plane takes for one turn"
    y = Axis("wavelength, in positions", log=True)
    return Chart(
        "wavelengths", title, Axis("plane i"), y, lines if parameters.scaling != "none" else lines[:2]
    )


def _checks(
    turning: Turning, q: Tensor, k: Tensor, parameters: RopeLab, charts: tuple[Chart, Chart]
) -> list[Check]:
    m, n, steps = parameters.m, parameters.n, _sampled(parameters.length)
    moved_q, moved_k = turning.at(q, m + steps), turning.at(k, n + steps)  # [N, K]
    scores = (moved_q * moved_k).sum(-1)  # [N]
    drift = (scores - scores[0]).abs().max().item()
    theory = turning.closed_score(q, k, torch.tensor(m - n)).item()
    norms = torch.cat((moved_q.norm(dim=-1) / q.norm(), moved_k.norm(dim=-1) / k.norm()))
    farthest = norms[(norms - 1).abs().argmax()].item()
    slower = (turning.speeds - 2 * torch.pi / turning.wavelengths()).abs().max().item()
    reordered = _between_layouts(turning, q, m)
    by_distance, decay = charts
    drawn = torch.as_tensor(by_distance.lines[0].y)
    over = (drawn.abs() - turning.bound(q, k, _sampled(parameters.length))).max().item()
    same, cosines = (torch.as_tensor(line.y) for line in decay.lines[:2])
    agreement = (same - cosines).abs().max().item()
    return [
        Check("m and n moved together: largest change of the score", 0.0, drift, 1e-9),
        Check("score, by m − n alone", theory, scores[0].item(), 1e-9, about="distance"),
        Check("|score| less the paper's bound, largest", 0.0, over, 1e-9, "<=", about="distance"),
        Check("agreement and mean cosine, largest difference", 0.0, agreement, 1e-9, about="decay"),
        Check("norm after turning by norm before, farthest from 1", 1.0, farthest, 1e-12, about="moved"),
        Check("same planes in the other layout, largest difference", 0.0, reordered, 1e-9, about="moved"),
        Check("speed of a plane and its formula, difference", 0.0, slower, 1e-12, about="wavelengths"),
    ]  # fmt: skip


def _between_layouts(turning: Turning, x: Tensor, position: int) -> float:
    """How far apart both layouts turn the same planes: one ends where the other does, reordered."""
    half = Turning(turning.rope, turning.slower)
    apart = Turning(turning.rope, turning.slower, interleaved=True)
    reordered = torch.stack(x.chunk(2), dim=-1).flatten()  # [K]
    ends = torch.cat(half.planes_of(half.at(x, position))) - torch.cat(
        apart.planes_of(apart.at(reordered, position))
    )
    return ends.abs().max().item()


def _facts(turning: Turning, q: Tensor, k: Tensor, parameters: RopeLab) -> dict[str, object]:
    m, n = parameters.m, parameters.n
    turned_q, turned_k = turning.at(q, m), turning.at(k, n)
    first, second = (
        a * b for a, b in zip(turning.planes_of(turned_q), turning.planes_of(turned_k), strict=True)
    )
    other = Turning(turning.rope, turning.slower, not turning.interleaved)
    farthest = turning.decay(torch.tensor([parameters.length]))[0].item()
    return {
        "layouts_differ": parameters.d_k > 2,
        "length": parameters.length, "decay": farthest, "fades": farthest < FADED, "stays": farthest >= FADED,
        "m": m, "n": n, "distance": m - n, "score": turned_q @ turned_k, "score_unturned": q @ k,
        "score_other_layout": other.at(q, m) @ other.at(k, n),
        "norm_before": q.norm(), "norm_after": turned_q.norm(),
        "wavelength_first": turning.wavelengths()[0], "wavelength_last": turning.wavelengths()[-1],
        "planes": _planes(turning, q, k), "products": first + second,
    }  # fmt: skip


def _planes(turning: Turning, q: Tensor, k: Tensor) -> list[dict[str, object]]:
    """Each plane's speed in radians a position, and where q and k stand in it before they are turned."""
    q_x, q_y = turning.planes_of(q)
    k_x, k_y = turning.planes_of(k)
    return [
        {"plane": i, "speed": turning.speeds[i], "q": [q_x[i], q_y[i]], "k": [k_x[i], k_y[i]]}
        for i in range(len(turning.speeds))
    ]


def _notes(parameters: RopeLab) -> list[str]:
    if parameters.length < POINTS:
        return []
    return [f"Curves and checks take {POINTS} of the {parameters.length + 1} distances."]
