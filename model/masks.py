"""Which keys a query sees: the mask rules evaluated, for any rows, never kept as a whole N × N table."""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.rules import AllOf, Anticausal, Bidirectional, Blocked, Causal, Custom, MaskRule, Prefix, Window


def allowed(rule: MaskRule, rows: range, keys: range, device: torch.device | str = "cpu") -> Tensor:
    """True where a query of `rows` sees a key of `keys`. Returns bool [T, S] for T rows and S keys."""
    match rule:
        case Custom(allow):
            table = [allow[row][keys.start : keys.stop] for row in rows]
            return torch.tensor(table, dtype=torch.bool, device=device).reshape(
                len(rows), len(keys)
            )  # [T, S]
        case Blocked(pairs):
            seen = _all(rows, keys, device)  # [T, S]
            for i, j in pairs:
                if i in rows and j in keys:
                    seen[i - rows.start, j - keys.start] = False
            return seen
        case AllOf(rules):
            return torch.stack([allowed(part, rows, keys, device) for part in rules]).all(dim=0)  # [T, S]
        case _:
            return _by_distance(rule, rows, keys, device)


def visible_range(rule: MaskRule, rows: range, keys: int) -> range:
    """A range that holds every key some query of `rows` sees; what lies outside need not be computed."""
    match rule:
        case Causal():
            return range(min(rows.stop, keys))
        case Anticausal():
            return range(min(rows.start, keys), keys)
        case Window(left, right):
            return range(max(0, rows.start - left), min(keys, rows.stop + right))
        case Prefix(length):
            return range(min(keys, max(rows.stop, length)))
        case AllOf(rules):
            parts = [visible_range(part, rows, keys) for part in rules]
            return range(max(part.start for part in parts), min(part.stop for part in parts))
        case _:
            return range(keys)


def sees_ahead(rule: MaskRule) -> bool:
    """Whether some query may see a key after its own position."""
    match rule:
        case Causal():
            return False
        case Window(_, right):
            return right > 0
        case AllOf(rules):
            return all(sees_ahead(part) for part in rules)
        case _:
            return True


def blind_query(rule: MaskRule, queries: int, keys: int | None = None) -> int | None:
    """The first of `queries` that sees none of `keys` keys (as many as queries unless given), or None."""
    keys = queries if keys is None else keys
    match rule:
        case Custom() | Blocked():
            suspects: Sequence[int] = range(queries)
        case AllOf(rules) if any(isinstance(part, Custom) for part in rules):
            suspects = range(queries)
        case AllOf(rules):
            blocked = [part.pairs for part in rules if isinstance(part, Blocked)]
            suspects = sorted({query for pairs in blocked for query, _ in pairs})
        case _:
            # Of the rest, only a shape that is not square can leave a query without a key.
            suspects = () if queries == keys else range(queries)
    for query in suspects:
        if not allowed(rule, range(query, query + 1), range(keys)).any():
            return query
    return None


def _by_distance(
    rule: Bidirectional | Causal | Anticausal | Window | Prefix,
    rows: range,
    keys: range,
    device: torch.device | str,
) -> Tensor:
    query = torch.arange(rows.start, rows.stop, device=device)[:, None]  # [T, 1]
    key = torch.arange(keys.start, keys.stop, device=device)[None, :]  # [1, S]
    match rule:
        case Bidirectional():
            return _all(rows, keys, device)  # [T, S]
        case Causal():
            return key <= query  # [T, S]
        case Anticausal():
            return key >= query  # [T, S]
        case Window(left, right):
            return (key >= query - left) & (key <= query + right)  # [T, S]
        case Prefix(length):
            return (key <= query) | (key < length)  # [T, S]


def _all(rows: range, keys: range, device: torch.device | str) -> Tensor:
    return torch.ones(len(rows), len(keys), dtype=torch.bool, device=device)  # [T, S]
