"""The arithmetic of one pair: from a query vector and a key vector to a weight, every number on the way."""

import torch

from app.services.payload import number, numbers
from app.services.readouts import label
from app.services.trace_store import Entry
from model.config import Learned, Rope
from model.rules import scale_in_words
from model.stack import Block
from model.trace import SiteTrace


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
        "query": {"index": query, "text": label(entry.loaded, entry.ids[query])},
        "key": {"index": key, "text": label(entry.loaded, entry.ids[key])},
        "q": numbers(q),
        "k": numbers(k),
        "products": numbers(q * k),
        "dot": number(dot),
        "scale": scale,
        "scale_words": scale_in_words(scale, len(q)),
        "scaled": number(site.attention(heads, rows, "scaled")[0, 0, key].item()),
        "bias": 0.0,
        "bias_words": _bias_in_words(entry),
        "mask": "open" if torch.isfinite(row[key]) else "closed",
        "score": number(row[key].item()),
        "row_max": number(row.max().item()),
        "row_sum_exp": number((row - row.max()).exp().sum().item()),
        "weight": number(weight),
        "v": numbers(value.float()),
        "contribution_norm": _contribution_norm(entry, site, head, value, weight),
    }


def _contribution_norm(
    entry: Entry, site: SiteTrace, head: int, value: torch.Tensor, weight: float
) -> float | None:
    """‖weight · v W_O‖, what this pair adds to the query's stream (Kobayashi et al. 2020, equation 4)."""
    stack = entry.loaded.transformer.stack
    block = stack.blocks[stack.config.sites.index(site.site)]
    assert isinstance(block, Block)
    with torch.inference_mode():
        added = block.attention.contribution(head, value)  # [D]
    return number(weight * float(added.float().norm()))


def _bias_in_words(entry: Entry) -> str:
    match entry.loaded.config.stack.position:
        case Learned():
            return "none: positions were added to the embeddings"
        case Rope():
            return "none: positions are rotated into q and k"
        case _:
            return "none: this model has no positions"
