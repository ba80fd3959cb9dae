"""The only attention arithmetic: softmax(QKᵀ · scale + bias + mask) V (Vaswani et al. 2017, equation 1).

`attend` is what the forward runs, fused by default. `attention` gives any stage of any heads and rows from
the same causes, in fp32 at least. With `fused=False` the forward goes through `attention` too; both agree
within 1e-5.
"""

from collections.abc import Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from model.masks import allowed, visible_range
from model.rules import Bidirectional, Causal, Given, ScoreRule

Stage = Literal["raw", "scaled", "biased", "masked", "weights"]
STAGES: tuple[Stage, ...] = ("raw", "scaled", "biased", "masked", "weights")

# Rows of queries handled at once where a mask must be materialised: memory stays linear in the keys.
ROWS = 256


def attention(  # noqa: PLR0913 -- what it computes is a rectangle at a stage, and each side has its name
    q: Tensor,
    k: Tensor,
    rule: ScoreRule,
    *,
    heads: range,
    rows: range,
    keys: range | None = None,
    stage: Stage = "weights",
    first: int = 0,
) -> Tensor:
    """Attention of some heads and rows at one stage: [..., H, T, S].

    q [..., all heads, all queries, K] and k [..., G, S, K] are what the forward used, after rotation. `heads`
    and `rows` select from them. Stages: raw q·k; scaled by 1/√d_k or what `rule` says; biased, that is capped
    where there is a soft-cap, and plus the position bias where there is one; masked with -inf; weights, each
    row a distribution. `keys`, where given, must hold every key that these rows see (`visible_keys`): the
    others are left out of the result. `first` is the index of q's first query among all tokens, above 0 where
    earlier ones are not run again.
    """
    keys = range(k.shape[-2]) if keys is None else keys
    q = _exact(q[..., heads.start : heads.stop, rows.start : rows.stop, :])
    k = _exact(k[..., keys.start : keys.stop, :])
    scores = _dot(q, _keys_of(k, rule.heads, heads))  # [..., H, T, S]
    if stage == "raw":
        return scores
    scores = scores * _per_head(rule.scales, heads, scores)
    if stage == "scaled":
        return scores
    rows = range(rows.start + first, rows.stop + first)
    scores = _capped_and_biased(scores, rule, heads, rows, keys)
    if stage == "biased":
        return scores
    seen = open_keys(rule, heads, rows, keys, scores.device)
    if not _all_open(rule, heads):
        scores = torch.where(seen, scores, -torch.inf)
    if stage == "masked":
        return scores
    return _patterned(torch.softmax(scores, dim=-1), seen, rule, heads, rows, keys)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: ScoreRule,
    real: Tensor | None = None,
    *,
    first: int = 0,
    fused: bool = True,
) -> Tensor:
    """Mixes values: softmax(q kᵀ · scale + bias + mask) v, [B, H, T, K], of q like it, k, v [B, G, S, K].

    `real` [B, S] is False where a key is padding, which no rule can open; for `first` see `attention`.
    """
    if fused and rule.softcap is None:
        mixed = _attend_fused(q, k, v, rule, real, first)
    else:
        mixed = _attend_explicitly(q, k, v, rule, real, first)
    for head, _ in rule.patterns:
        weights = attention(q, k, rule, heads=range(head, head + 1), rows=range(q.shape[2]), first=first)
        mixed[:, head] = (weights[:, 0] @ _exact(v[:, head // (rule.heads // v.shape[1])])).to(v.dtype)
    return mixed


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """Bounds x smoothly to ±cap: cap · tanh(x / cap) (Gemma Team 2024, section 2.2)."""
    return cap * torch.tanh(x / cap)


def open_keys(rule: ScoreRule, heads: range, rows: range, keys: range, device: torch.device | str) -> Tensor:
    """True where a key is open to a query: [1 or H, T, S], 1 where the heads share one mask."""
    masks = rule.masks[heads.start : heads.stop]
    distinct = {mask: allowed(mask, rows, keys, device) for mask in dict.fromkeys(masks)}
    chosen = masks[:1] if len(distinct) == 1 else masks
    return torch.stack([distinct[mask] for mask in chosen])  # [1 or H, T, S]


def visible_keys(rule: ScoreRule, rows: range, keys: int) -> range:
    """A range that holds every key that any head shows to a query of `rows`."""
    if any(isinstance(pattern, Given) for _, pattern in rule.patterns):
        return range(keys)
    parts = [visible_range(mask, rows, keys) for mask in dict.fromkeys(rule.masks)]
    return range(min(part.start for part in parts), max(part.stop for part in parts))


def _attend_fused(
    q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule, real: Tensor | None, first: int
) -> Tensor:
    scale = rule.shared_scale
    # torch's fused kernel multiplies its -inf by the scale: 0 makes NaN, and below 0 what is masked is open.
    if scale is None or scale <= 0:
        q, scale = q * _per_head(rule.scales, range(rule.heads), q), 1.0
    grouped = k.shape[1] != q.shape[1]
    causal = isinstance(rule.shared_mask, Causal) and first == 0
    if real is None and rule.bias is None and (causal or isinstance(rule.shared_mask, Bidirectional)):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)
    mixed = torch.empty_like(q)
    for rows, shifted, keys in _blocks(q, k, rule, first):
        mask = _open(rule, shifted, keys, real, q.device)  # [B or 1, H or 1, rows, keys]
        if rule.bias is not None:
            bias = _bias(rule, range(rule.heads), shifted, keys, q)  # [H, rows, keys]
            mask = bias.masked_fill(~mask, -torch.inf)  # [B or 1, H, rows, keys]
        mixed[:, :, rows.start : rows.stop] = F.scaled_dot_product_attention(
            q[:, :, rows.start : rows.stop],
            k[:, :, keys.start : keys.stop],
            v[:, :, keys.start : keys.stop],
            attn_mask=mask,
            scale=scale,
            enable_gqa=grouped,
        )
    return mixed


def _attend_explicitly(
    q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule, real: Tensor | None, first: int
) -> Tensor:
    values = v.repeat_interleave(rule.heads // v.shape[1], dim=1)  # [B, H, S, K]
    mixed = torch.empty_like(q)
    for rows, shifted, keys in _blocks(q, k, rule, first):
        scores = attention(
            q, k, rule, heads=range(rule.heads), rows=rows, keys=keys, stage="biased", first=first
        )
        scores = scores.masked_fill(~_open(rule, shifted, keys, real, q.device), -torch.inf)  # [B, H, T, S]
        weights = torch.softmax(scores, dim=-1).to(v.dtype)
        mixed[:, :, rows.start : rows.stop] = weights @ values[:, :, keys.start : keys.stop]
    return mixed


def _blocks(q: Tensor, k: Tensor, rule: ScoreRule, first: int) -> Iterator[tuple[range, range, range]]:
    """Blocks of rows of q, the indices of these queries among all tokens, and the keys that they see."""
    for start in range(0, q.shape[2], ROWS):
        rows = range(start, min(start + ROWS, q.shape[2]))
        shifted = range(rows.start + first, rows.stop + first)
        yield rows, shifted, visible_keys(rule, shifted, k.shape[2])


def _open(rule: ScoreRule, rows: range, keys: range, real: Tensor | None, device: torch.device) -> Tensor:
    mask = open_keys(rule, range(rule.heads), rows, keys, device)[None]  # [1, 1 or H, T, S]
    if real is None:
        return mask
    mask = mask & real[:, None, None, keys.start : keys.stop]  # [B, 1 or H, T, S]
    # A padding query may see no key at all; its output is read by nobody, but must not be NaN.
    blind = ~mask.any(dim=-1, keepdim=True)  # [B, 1 or H, T, 1]
    return mask | blind


def _capped_and_biased(scores: Tensor, rule: ScoreRule, heads: range, rows: range, keys: range) -> Tensor:
    if rule.softcap is not None:
        scores = soft_cap(scores, rule.softcap)
    return scores if rule.bias is None else scores + _bias(rule, heads, rows, keys, scores)


def _bias(rule: ScoreRule, heads: range, rows: range, keys: range, like: Tensor) -> Tensor:
    """The position bias [H, T, S], for the tokens' indices or the positions a plan gives them instead."""
    assert rule.bias is not None
    if rule.places is None:
        query = torch.arange(rows.start, rows.stop, device=like.device)  # [T]
        key = torch.arange(keys.start, keys.stop, device=like.device)  # [S]
    else:
        query, key = rule.places[rows.start : rows.stop], rule.places[keys.start : keys.stop]
    bias: Tensor = rule.bias.at(heads, query, key)
    return bias.to(like.dtype)


def _patterned(
    weights: Tensor, seen: Tensor, rule: ScoreRule, heads: range, rows: range, keys: range
) -> Tensor:
    """Weights [..., H, T, S], heads replaced that `rule.patterns` name; `seen` [1 or H, T, S] is open."""
    for head, pattern in rule.patterns:
        if head in heads:
            place = head - heads.start
            if isinstance(pattern, Given):
                table = [row[keys.start : keys.stop] for row in pattern.weights[rows.start : rows.stop]]
                replaced = weights.new_tensor(table)  # [T, S]
            else:
                open_to = seen[place if len(seen) > 1 else 0].to(weights.dtype)  # [T, S]
                replaced = open_to / open_to.sum(dim=-1, keepdim=True)
            weights[..., place, :, :] = replaced
    return weights


def _all_open(rule: ScoreRule, heads: range) -> bool:
    return all(isinstance(mask, Bidirectional) for mask in rule.masks[heads.start : heads.stop])


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
