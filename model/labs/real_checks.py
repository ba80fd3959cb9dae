"""What is drawn of real heads' scores, held against their q and k multiplied out row by row."""

import math
from dataclasses import dataclass

import torch

from model.labs.one_head import Where, by_hand, tolerance
from model.labs.reading import Ran
from model.labs.result import Chart, Check, Heatmap


@dataclass(frozen=True)
class ByHand:
    """Of one head: spread of its scaled scores, and their entropy as a share, largest weight, and scores."""

    spread: float
    entropy: float
    largest: float
    scores: torch.Tensor


def _by_hand(ran: Ran, where: Where) -> ByHand:
    """Row by row over the open keys alone; a row of one key has no choice and is left out."""
    masked, weights = by_hand(ran, where)  # [T, S] each
    site = where.of(ran)
    q, k = (
        site.q[where.head].cpu().double(),
        site.k[site.key_head(where.head)].cpu().double(),
    )  # [T, K], [S, K]
    variances, shares, largest, scores = [], [], [], []
    for row, weight, query in zip(masked, weights, q, strict=True):
        keys = torch.isfinite(row)
        products = k[keys] @ query * site.rule.scales[where.head]  # [open]
        scores.append(products)
        if len(products) > 1:
            p = weight[keys]
            variances.append(products.var(correction=0).item())
            shares.append(-(p * p.clamp(min=1e-300).log()).sum().item() / math.log(len(p)))
            largest.append(p.max().item())
    count = len(variances)
    spread = math.sqrt(sum(variances) / count)
    return ByHand(spread, sum(shares) / count, sum(largest) / count, torch.cat(scores))


def check_spreads(ran: Ran, where: Where, matrices: list[Heatmap]) -> list[Check]:
    """The chosen head's cell of both matrices, and the corner that is farthest from it."""
    raw, scaled = matrices
    layers, heads = raw.values.shape
    far = Where(0 if where.layer >= layers / 2 else layers - 1, 0 if where.head >= heads / 2 else heads - 1)
    checks = []
    for place in dict.fromkeys((where, far)):
        name, expected = f"L{place.layer}H{place.head}", _by_hand(ran, place).spread
        scale = abs(place.of(ran).rule.scales[place.head])
        for which, matrix, size in (("raw", raw, expected / scale), ("scaled", scaled, expected)):
            found = matrix.values[place.layer, place.head].item()
            # A sum of some dozen products in fp32 keeps five digits of the largest.
            within = 10 * tolerance(ran.loaded) * max(1.0, size)
            what = f"{which} spread of {name}, row by row from q and k"
            checks.append(Check(what, size, found, within, about=matrix.id))
    return checks


def check_scores(ran: Ran, where: Where, chart: Chart) -> list[Check]:
    """The spread of all pairs as the histogram draws it, raw and scaled, within the width of a bin."""
    scaled = _by_hand(ran, where).scores  # [pairs]
    raw = scaled / where.of(ran).rule.scales[where.head]
    checks = []
    for line, values in zip(chart.lines, (raw, scaled), strict=True):
        x, share = torch.as_tensor(line.x), torch.as_tensor(line.y)
        mean = (x * share).sum()
        seen = ((x - mean).square() * share).sum().sqrt().item()
        expected = values.std(correction=0).item()
        width = (x[1] - x[0]).item()
        # A score is at most half a bin from where it is drawn, so that no spread moves by more.
        checks.append(Check(f"spread of all {line.name}", expected, seen, width / 2, about="scores"))
    return checks


def check_places(ran: Ran, where: Where, saturation: Chart, heat: Chart) -> list[Check]:
    """Where the head sits among all, and what its softmax is at the factor one."""
    found, within = _by_hand(ran, where), 10 * tolerance(ran.loaded)
    name, point = f"L{where.layer}H{where.head}", saturation.lines[1]
    at, size = list(heat.lines[0].x).index(1.0), max(1.0, found.spread)
    spread, share = (float(values[0] or 0) for values in (point.x, point.y))
    return [
        Check(f"spread of {name}, row by row", found.spread, spread, within * size, about="saturation"),
        Check(f"entropy of {name}, row by row", found.entropy, share, within * size, about="saturation"),
        *(
            Check(
                f"{what} at factor 1, row by row",
                expected,
                float(line.y[at] or 0),
                within * size,
                about=heat.id,
            )
            for what, expected, line in (
                ("entropy", found.entropy, heat.lines[0]),
                ("largest weight", found.largest, heat.lines[1]),
            )
        ),
    ]
