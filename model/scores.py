"""The only attention arithmetic: softmax(QKᵀ · scale + mask) V (Vaswani et al. 2017, equation 1).

`attend` is what the forward runs, fused by default. `attention` gives any stage of any heads and rows from
the same causes, in fp32 at least. With `fused=False` the forward goes through `attention` too; both agree
within 1e-5.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from model.masks import allowed, visible_range
from model.rules import Bidirectional, Causal, ScoreRule

Stage = Literal["raw", "scaled", "biased", "masked", "weights"]
STAGES: tuple[Stage, ...] = ("raw", "scaled", "biased", "masked", "weights")

# Rows of queries handled at once where a mask must be materialised: memory stays linear in the keys.
ROWS = 256


def attention(
    q: Tensor,
    k: Tensor,
    rule: ScoreRule,
    *,
    heads: range,
    rows: range,
    keys: range | None = None,
    stage: Stage = "weights",
) -> Tensor:
    """Attention of some heads and rows at one stage: [..., H, T, S].

    q [..., all heads, all queries, K] and k [..., G, S, K] are what the forward used, after rotation. `heads`
    and `rows` select from them. Stages: raw q·k; scaled by 1/√d_k or what `rule` says; biased (no model here
    has a bias yet); masked with -inf; weights, each row a distribution. `keys`, where given, must hold every
    key that these rows see (`visible_keys`): the others are left out of the result.
    """
    keys = range(k.shape[-2]) if keys is None else keys
    q = _exact(q[..., heads.start : heads.stop, rows.start : rows.stop, :])
    k = _exact(k[..., keys.start : keys.stop, :])
    scores = _dot(q, _keys_of(k, rule.heads, heads))  # [..., H, T, S]
    if stage == "raw":
        return scores
    scores = scores * _per_head(rule.scales, heads, scores)
    if stage in ("scaled", "biased"):
        return scores
    scores = scores.masked_fill(~open_keys(rule, heads, rows, keys, scores.device), -torch.inf)
    return scores if stage == "masked" else torch.softmax(scores, dim=-1)


def attend(
    q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule, real: Tensor | None = None, *, fused: bool = True
) -> Tensor:
    """Mixes values: softmax(q kᵀ · scale + mask) v, [B, H, T, K], of q [B, H, T, K], k and v [B, G, S, K].

    `real` [B, S] is False where a key is padding, which no rule can open.
    """
    if not fused:
        return _attend_explicitly(q, k, v, rule, real)
    scale = rule.shared_scale
    # torch's fused kernel multiplies its -inf by the scale: 0 makes NaN, and below 0 what is masked is open.
    if scale is None or scale <= 0:
        q, scale = q * _per_head(rule.scales, range(rule.heads), q), 1.0
    grouped = k.shape[1] != q.shape[1]
    shared = rule.shared_mask
    if real is None and isinstance(shared, Bidirectional | Causal):
        causal = isinstance(shared, Causal)
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)
    mixed = torch.empty_like(q)
    for start in range(0, q.shape[2], ROWS):
        rows = range(start, min(start + ROWS, q.shape[2]))
        mask = _open(rule, rows, k.shape[2], real, q.device)  # [B or 1, H or 1, rows, S]
        block = q[:, :, rows.start : rows.stop]
        mixed[:, :, rows.start : rows.stop] = F.scaled_dot_product_attention(
            block, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped
        )
    return mixed


def open_keys(rule: ScoreRule, heads: range, rows: range, keys: range, device: torch.device | str) -> Tensor:
    """True where a key is open to a query: [1 or H, T, S], 1 where the heads share one mask."""
    masks = rule.masks[heads.start : heads.stop]
    distinct = {mask: allowed(mask, rows, keys, device) for mask in dict.fromkeys(masks)}
    chosen = masks[:1] if len(distinct) == 1 else masks
    return torch.stack([distinct[mask] for mask in chosen])  # [1 or H, T, S]


def visible_keys(rule: ScoreRule, rows: range, keys: int) -> range:
    """A range that holds every key that any head shows to a query of `rows`."""
    parts = [visible_range(mask, rows, keys) for mask in dict.fromkeys(rule.masks)]
    return range(min(part.start for part in parts), max(part.stop for part in parts))


def _attend_explicitly(q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule, real: Tensor | None) -> Tensor:
    heads, rows = range(rule.heads), range(q.shape[2])
    scores = attention(q, k, rule, heads=heads, rows=rows, stage="biased")  # [B, H, T, S]
    scores = scores.masked_fill(~_open(rule, rows, k.shape[2], real, q.device), -torch.inf)
    weights = torch.softmax(scores, dim=-1).to(v.dtype)
    values = v.repeat_interleave(rule.heads // v.shape[1], dim=1)  # [B, H, S, K]
    return weights @ values  # [B, H, T, K]


def _open(rule: ScoreRule, rows: range, keys: int, real: Tensor | None, device: torch.device) -> Tensor:
    mask = open_keys(rule, range(rule.heads), rows, range(keys), device)[None]  # [1, 1 or H, T, S]
    if real is None:
        return mask
    mask = mask & real[:, None, None, :]  # [B, 1 or H, T, S]
    # A padding query may see no key at all; its output is read by nobody, but must not be NaN.
    return mask | ~real[:, None, rows.start : rows.stop, None]


def _exact(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _keys_of(k: Tensor, all_heads: int, heads: range) -> Tensor:
    """The keys the chosen query heads read: [..., H, S, K], or k as it is where all heads are chosen."""
    if len(heads) == all_heads:
        return k
    group = all_heads // k.shape[-3]
    return k[..., [head // group for head in heads], :, :]


def _dot(q: Tensor, k: Tensor) -> Tensor:
    """q·k of every query with every key: query heads that share a key head are multiplied as one matrix."""
    *batch, heads, rows, width = q.shape
    grouped = q.reshape(*batch, k.shape[-3], -1, width)  # [..., G, H/G · T, K]
    return (grouped @ k.mT).view(*batch, heads, rows, k.shape[-2])  # [..., H, T, S]


def _per_head(values: tuple[float, ...], heads: range, like: Tensor) -> Tensor:
    return like.new_tensor(values[heads.start : heads.stop])[:, None, None]  # [H, 1, 1]
