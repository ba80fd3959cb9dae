"""What is drawn of a layer's heads, found a second time from the trace, the weights, or theory."""

from collections.abc import Mapping

import torch
from torch import Tensor

from model.labs.head_layer import HeadLayer
from model.labs.parameters.heads import Heads, Projection
from model.labs.result import Chart, Check, Heatmap, Series
from model.labs.subspaces import overlaps, pieces

# Random subspaces that are drawn to see that they overlap as they should.
DRAWN = 6
SEED = 0


def layer_checks(layer: HeadLayer, parameters: Heads, series: Mapping[str, Series]) -> list[Check]:
    """Checks of the pattern, the lengths and the overlaps as they are drawn."""
    pattern, lengths, every = series["pattern"], series["lengths"], series["all-lengths"]
    overlap = series["overlap"]
    assert isinstance(pattern, Heatmap)
    assert isinstance(lengths, Chart)
    assert isinstance(every, Heatmap)
    assert isinstance(overlap, Heatmap)
    return [
        _pattern(layer, parameters.head, pattern.values),
        *_lengths(layer, torch.as_tensor(lengths.lines[0].y), every.values[layer.index]),
        *_overlap(layer, parameters.projection, overlap.values),
    ]


def _pattern(layer: HeadLayer, head: int, drawn: Tensor) -> Check:
    site = layer.ran.trace.sites[layer.site]
    alone = [
        site.attention(range(head, head + 1), range(row, row + 1))[0, 0].tolist()
        for row in range(site.queries)
    ]
    difference = (drawn - torch.tensor(alone)).abs().max().item()
    name = f"largest difference between the drawn pattern and the rows of head {head} alone"
    return Check(name, 0.0, difference, 1e-4, about="pattern")


def _lengths(layer: HeadLayer, drawn: Tensor, of_all: Tensor) -> list[Check]:
    """Mean lengths of pattern · values · W_O, head by head in fp64."""
    site, weights = layer.ran.trace.sites[layer.site], layer.attention.o.weight
    width = layer.attention.config.head_width
    found = []
    for head in range(site.heads):
        pattern = site.attention(range(head, head + 1), range(site.queries))[0].double()  # [T, S]
        columns = weights[:, head * width : (head + 1) * width].double()  # [D, K]
        added = pattern @ site.v[site.key_head(head)].double() @ columns.T  # [T, D]
        found.append(added.square().sum(dim=1).sqrt().mean().item())
    lengths = torch.tensor(found)
    # Rounding in the model's own precision, in sums of some hundred terms.
    tolerance = 256 * torch.finfo(weights.dtype).eps * max(1.0, *found)
    name = "and the length of pattern · values · W^O"
    return [
        Check(
            f"largest difference between a {what} {name}",
            0.0,
            (values - lengths).abs().max().item(),
            tolerance,
            about=about,
        )
        for what, values, about in (
            ("bar", drawn, "lengths"),
            (f"cell of row {layer.index}", of_all, "all-lengths"),
        )
    ]


def _overlap(layer: HeadLayer, projection: Projection, drawn: Tensor) -> list[Check]:
    """Each subspace is itself; the closest two by their principal angles; random ones by theory."""
    heads = len(drawn)
    own = (drawn.diagonal() - 1).abs().max().item()
    # Some hundred products in fp32.
    checks = [Check("overlap of a head with itself, furthest from 1", 0.0, own, 1e-4, about="overlap")]
    columns = pieces(layer.attention, projection)  # [H, D, K]
    depth, width = columns.shape[1:]
    checks.append(_random(depth, min(depth, width)))
    others = drawn.masked_fill(torch.eye(heads, dtype=torch.bool), -1.0)
    i, j = divmod(int(others.argmax()), heads)
    if i == j:
        return checks
    pair = [torch.linalg.svd(columns[head].double(), full_matrices=False) for head in (i, j)]
    # Where a head's matrix has not its full rank, the subspace that is drawn is not settled.
    if width <= depth and all(one.S[-1] > 1e-5 * one.S[0] for one in pair):
        cosines = torch.linalg.svdvals(pair[0].U.T @ pair[1].U)  # [K]
        angles = cosines.square().mean().item()
        name = f"overlap of {min(i, j)} and {max(i, j)}, by the angles between them"
        checks.append(Check(name, angles, drawn[i, j].item(), 1e-4, about="overlap"))
    return checks


def _random(depth: int, width: int) -> Check:
    """The overlap of random subspaces is K/D on average.

    Its variance is 2 (D - K)² / (D² (D - 1)(D + 2)), of the trace of a product of two random projections.
    """
    generator = torch.Generator().manual_seed(SEED)
    drawn = overlaps(torch.randn(DRAWN, depth, width, generator=generator))
    pairs = drawn[torch.ones(DRAWN, DRAWN, dtype=torch.bool).triu(1)]  # [pairs]
    spread = (2 * (depth - width) ** 2 / (depth**2 * max(1, depth - 1) * (depth + 2)) / len(pairs)) ** 0.5
    name = f"mean overlap of {DRAWN} random subspaces of this size: d_k/D"
    # Six times the spread of the mean, and the rounding.
    return Check(name, width / depth, pairs.mean().item(), 6 * spread + 1e-5, about="overlap-mean")
