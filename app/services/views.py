"""Pictures and figures of a trace's attention, in blocks of rows, so that memory grows with N, not N²."""

from collections.abc import Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from app.services.payload import number, numbers
from model.scores import Stage, open_keys, visible_keys
from model.trace import SiteTrace

Pool = Literal["max", "mean"]
Shown = Stage | Literal["mask"]

# Attention weights handled at once: a few MB, which a core's cache holds.
BLOCK_CELLS = 1 << 19

DEFINITIONS = {
    "entropy": "mean over queries of the row's entropy −Σ w ln w, in nats: "
    "0 looks at one key, ln(keys) at all alike",
    "diagonal": "mean weight from each token to itself",
    "previous": "mean weight from each token but the first to the token before it",
    "next": "mean weight from each token but the last to the token after it",
    "first": "mean weight from each token to the first one ([CLS], or the start of the text)",
    "max": "mean over queries of the row's largest weight",
}


def overview(site: SiteTrace, size: int) -> Tensor:
    """All heads of a site as thumbnails: uint8 [H, min(size, T), min(size, S)], max-pooled, round(255 w).

    A weight that is not a number is 0 here; the trace's notices say that the run was not finite.
    """
    height, width = min(size, site.queries), min(size, site.keys)
    # Queries are pooled first: that is the quick direction in memory, and leaves little for the other.
    tall = torch.zeros(site.heads, height, site.keys, device=site.q.device)  # [H, height, S]
    for rows, block in weight_blocks(site):
        _keep_largest(tall, block, rows, site.queries)
    pooled = _pool_keys(tall, width, "max")  # [H, height, width]
    return (pooled * 255).round().nan_to_num(0).to(torch.uint8)


def tile(
    site: SiteTrace, head: int, stage: Shown, rows: range, keys: range, limit: int, pool: Pool
) -> Tensor:
    """One head's rows × keys at a stage, pooled to at most `limit` a side: float [T', S'].

    Stage mask is uint8, 1 where a key is open; its mean is a float, the share of open keys.
    """
    height, width = min(limit, len(rows)), min(limit, len(keys))
    blocks = []
    for block in _row_blocks(rows, site.keys):
        values = _stage(site, head, stage, block)[:, :, keys.start : keys.stop]  # [1, rows, S]
        blocks.append(_pool_keys(values, width, pool))
    picture = _pool_queries(torch.cat(blocks, dim=1), height, pool)[0]  # [T', S']
    return picture.to(torch.uint8) if stage == "mask" and pool == "max" else picture


def figures(site: SiteTrace) -> list[dict[str, float | None]]:
    """The figures of `DEFINITIONS` for every head of a site; None where the input is too short for one."""
    totals = {name: torch.zeros(site.heads, dtype=torch.float64) for name in DEFINITIONS}
    for rows, block in weight_blocks(site):
        weights = block.cpu()  # [H, rows, S]
        totals["entropy"] += torch.special.entr(weights).sum(dim=(1, 2))
        totals["max"] += weights.amax(dim=2).sum(dim=1)
        totals["first"] += weights[:, :, 0].sum(dim=1)
        for name, offset in (("diagonal", 0), ("previous", -1), ("next", 1)):
            totals[name] += weights.diagonal(rows.start + offset, 1, 2).sum(dim=1)
    counts = {name: site.queries - (name in ("previous", "next")) for name in DEFINITIONS}
    if ".cross." in site.site:
        # Target and source positions do not count the same thing.
        counts |= dict.fromkeys(("diagonal", "previous", "next"), 0)
    means = {
        name: (total / counts[name]).tolist() if counts[name] else None for name, total in totals.items()
    }
    return [
        {name: None if values is None else number(values[head]) for name, values in means.items()}
        for head in range(site.heads)
    ]


def links(site: SiteTrace, query: int, key: int) -> list[float | None]:
    """The weight every head of a site gives from one query to one key."""
    weights = site.attention(site.all_heads, range(query, query + 1))  # [H, 1, S]
    return numbers(weights[:, 0, key])


def weight_blocks(site: SiteTrace) -> Iterator[tuple[range, Tensor]]:
    """The weights of all heads [H, rows, S] by blocks; keys that a block's mask closes are not computed."""
    for rows in _row_blocks(range(site.queries), site.keys * site.heads):
        seen = visible_keys(site.rule, rows, site.keys)
        block = site.attention(site.all_heads, rows, keys=seen)  # [H, rows, seen]
        yield rows, F.pad(block, (seen.start, site.keys - seen.stop))  # [H, rows, S]


def _row_blocks(rows: range, row_cells: int) -> Iterator[range]:
    step = max(1, BLOCK_CELLS // row_cells)
    for start in range(rows.start, rows.stop, step):
        yield range(start, min(start + step, rows.stop))


def _stage(site: SiteTrace, head: int, stage: Shown, rows: range) -> Tensor:
    heads = range(head, head + 1)
    if stage == "mask":
        return open_keys(site.rule, heads, rows, range(site.keys), site.q.device).float()  # [1, rows, S]
    return site.attention(heads, rows, stage)  # [1, rows, S]


def _keep_largest(tall: Tensor, block: Tensor, rows: range, queries: int) -> None:
    """Raises each cell of `tall` [H, T', S] to the largest of its rows in `block` [H, rows, S]."""
    height = tall.shape[1]
    if len(rows) == queries and queries % height == 0:
        tall[:] = block.view(len(block), height, -1, block.shape[2]).amax(dim=2)
        return
    for cell in range(rows.start * height // queries, -(-rows.stop * height // queries)):
        start, stop = cell * queries // height, -(-(cell + 1) * queries // height)
        part = block[:, max(start - rows.start, 0) : stop - rows.start]  # [H, some rows, S]
        tall[:, cell] = torch.maximum(tall[:, cell], part.amax(dim=1))


def _pool_keys(x: Tensor, width: int, pool: Pool) -> Tensor:
    """[H, T, S] -> [H, T, width]; cell i covers keys floor(iS/width) to ceil((i+1)S/width)."""
    if x.shape[-1] == width:
        return x
    return F.adaptive_max_pool1d(x, width) if pool == "max" else F.adaptive_avg_pool1d(x, width)


def _pool_queries(x: Tensor, height: int, pool: Pool) -> Tensor:
    """[H, T, S] -> [H, height, S]."""
    return _pool_keys(x.mT, height, pool).mT if x.shape[-2] != height else x
