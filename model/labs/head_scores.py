"""How far the scores of real heads spread, and what softmax makes of them: every head of a run.

Only pairs that the mask leaves open count. A row of one open key has no choice and is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.labs.one_head import Where
from model.labs.reading import Ran
from model.labs.softmax_measures import entropy
from model.scores import Stage, attention
from model.trace import SiteTrace

RAW_AND_MASKED: tuple[Stage, Stage] = ("raw", "masked")


@dataclass(frozen=True)
class Heads:
    """Of every head, [L, H] each: spread of raw and scaled scores within a row, entropy, largest weight.

    `entropy` and `largest` are means over rows; entropy as a share of the most that a row's open keys allow.
    """

    raw: Tensor
    scaled: Tensor
    entropy: Tensor
    largest: Tensor


def measure(ran: Ran, after_layer: Callable[[int], None]) -> Heads:
    """Every head of a run; `after_layer` is told how many layers are done."""
    found = []
    for number, site in enumerate(ran.trace.sites.values()):
        found.append(_layer(site))
        after_layer(number + 1)
    return Heads(*(torch.stack(parts) for parts in zip(*found, strict=True)))


def _layer(site: SiteTrace) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four measures of one layer's heads, [H] each."""
    rows = range(site.queries)
    raw, masked = (site.attention(site.all_heads, rows, stage).cpu() for stage in RAW_AND_MASKED)  # [H, T, S]
    is_open = torch.isfinite(masked)  # [H, T, S]
    share, largest = row_measures(masked.softmax(dim=-1), is_open)
    spread = row_spread(raw, is_open)  # [H]
    return spread, spread * spread.new_tensor(site.rule.scales).abs(), share, largest


def row_spread(scores: Tensor, is_open: Tensor) -> Tensor:
    """Standard deviation of the open scores of each row of [H, T, S], root mean square over rows: [H].

    What all keys of a row have in common cancels in the softmax, so that only this spread decides.
    """
    count = is_open.sum(dim=-1)  # [H, T]
    mean = (scores * is_open).sum(dim=-1, keepdim=True) / count[..., None]  # [H, T, 1]
    variance = ((scores - mean).square() * is_open).sum(dim=-1) / count  # [H, T]
    several = count > 1  # [H, T]
    return ((variance * several).sum(dim=-1) / several.sum(dim=-1)).sqrt()  # [H]


def row_measures(weights: Tensor, is_open: Tensor) -> tuple[Tensor, Tensor]:
    """Entropy as a share of ln(open keys), and largest weight, means over rows of [H, T, S]: [H] each."""
    count = is_open.sum(dim=-1)  # [H, T]
    several = count > 1  # [H, T]
    share = entropy(weights) / count.clamp(min=2).log()  # [H, T]
    rows = several.sum(dim=-1)  # [H]
    return (share * several).sum(dim=-1) / rows, (weights.amax(dim=-1) * several).sum(dim=-1) / rows


def open_scores(ran: Ran, where: Where, stage: Stage) -> Tensor:
    """One head's scores at a stage before the mask, open pairs only, in fp64: [pairs]."""
    site, rows = where.of(ran), range(len(ran.labels))
    is_open = torch.isfinite(site.attention(where.heads, rows, "masked"))  # [1, T, S]
    return site.attention(where.heads, rows, stage)[is_open].cpu().double()  # [pairs]


def multiplied(site: SiteTrace, where: Where, times: float) -> tuple[Tensor, Tensor]:
    """Weights [1, T, S] of one head with its scale times `times`, in fp64, and which pairs are open."""
    rule = replace(site.rule, scales=tuple(scale * times for scale in site.rule.scales), patterns=())
    q, k = site.q.double(), site.k.double()
    masked = attention(q, k, rule, heads=where.heads, rows=range(site.queries), stage="masked")  # [1, T, S]
    return masked.softmax(dim=-1).cpu(), torch.isfinite(masked).cpu()
