"""The arithmetic of one pair: from a query vector and a key vector to a weight, every number on the way."""

from typing import Literal

import torch

from app.services.payload import number, numbers
from app.services.trace_store import Entry
from model.config import AlibiPosition, Learned, RelativeBuckets, Rope, Sinusoidal
from model.rules import Given, scale_in_words
from model.scores import Stage, soft_cap
from model.trace import SiteTrace

_AROUND_BIAS: tuple[Stage, Stage] = ("biased", "scaled")


def pair(entry: Entry, site: SiteTrace, head: int, query: int, key: int) -> dict[str, object]:
    """q, k, products, dot, scale, mask, score, softmax terms, weight, and what the value adds."""
    heads, rows = range(head, head + 1), range(query, query + 1)
    q, k = site.q[head, query].float(), site.k[site.key_head(head), key].float()  # [K] each
    row = site.attention(heads, rows, "masked")[0, 0]  # [S]
    weight = site.attention(heads, rows)[0, 0, key].item()
    value = site.v[site.key_head(head), key]  # [K]
    scale = site.rule.scales[head]
    dot = site.attention(heads, rows, "raw")[0, 0, key].item()
    return {
        "site": site.site,
        "head": head,
        "query": {"index": query, "text": _tokens(entry, site, "query")[query]},
        "key": {"index": key, "text": _tokens(entry, site, "key")[key]},
        "q": numbers(q),
        "k": numbers(k),
        "products": numbers(q * k),
        "dot": number(dot),
        "scale": scale,
        "scale_words": scale_in_words(scale, len(q)),
        "scaled": number(site.attention(heads, rows, "scaled")[0, 0, key].item()),
        "softcap": site.rule.softcap,
        "bias": number(_bias(site, head, query, key)),
        "bias_words": _bias_in_words(entry, site),
        "mask": "open" if torch.isfinite(row[key]) else "closed",
        "score": number(row[key].item()),
        "row_max": number(row.max().item()),
        "row_sum_exp": number((row - row.max()).exp().sum().item()),
        "weight": number(weight),
        "weight_words": _weight_in_words(site, head),
        "v": numbers(value.float()),
        "contribution_norm": _contribution_norm(entry, site, head, value, weight),
    }


def _weight_in_words(site: SiteTrace, head: int) -> str | None:
    """Where the weight comes from, if not from the scores."""
    pattern = dict(site.rule.patterns).get(head)
    if pattern is None:
        return None
    return "given by hand" if isinstance(pattern, Given) else "the same for every open key"


def _contribution_norm(
    entry: Entry, site: SiteTrace, head: int, value: torch.Tensor, weight: float
) -> float | None:
    """‖weight · v W_O‖, what this pair adds to the query's stream (Kobayashi et al. 2020, equation 4)."""
    with torch.inference_mode():
        added = entry.loaded.transformer.attention_at(site.site).contribution(head, value)  # [D]
    return number(weight * float(added.float().norm()))


def _tokens(entry: Entry, site: SiteTrace, role: Literal["query", "key"]) -> tuple[str, ...]:
    """What the positions of a site's queries or keys stand for."""
    stack, kind, _ = site.site.split(".")
    beside = bool(entry.source_tokens)
    of_source = beside and (stack == "encoder" or (kind == "cross" and role == "key"))
    return entry.source_tokens if of_source else entry.tokens


def _bias(site: SiteTrace, head: int, query: int, key: int) -> float:
    """What positions add to this score: the step from the scaled, perhaps capped, score."""
    if site.rule.bias is None:
        return 0.0
    heads, rows = range(head, head + 1), range(query, query + 1)
    biased, scaled = (site.attention(heads, rows, stage)[0, 0, key] for stage in _AROUND_BIAS)
    capped = scaled if site.rule.softcap is None else soft_cap(scaled, site.rule.softcap)
    return float(biased - capped)


def _bias_in_words(entry: Entry, site: SiteTrace) -> str:
    if ".cross." in site.site:
        return "none: cross-attention knows no positions of its own"
    match entry.loaded.config.stack_of(site.site).position:
        case Learned() | Sinusoidal():
            return "none: positions were added to the embeddings"
        case Rope():
            return "none: positions are rotated into q and k"
        case AlibiPosition():
            return "ALiBi: −slope × distance"
        case RelativeBuckets():
            return "a trained bias for this head and distance"
        case _:
            return "none: this model has no positions"
