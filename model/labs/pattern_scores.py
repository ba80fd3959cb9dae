"""Scores of heads from their patterns, as `probes.toml` defines them (Voita et al. 2019, Olsson et al. 2022).

Patterns are weights [N, T, S] of N heads on one probe. Every score comes as rows [N, R], one value a row that
counts, so that rows of several probes are averaged as one. What has no row in a probe has R = 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from model.labs.word_links import Word

OFFSETS = {"previous": -1, "next": 1, "self": 0}
DELIMITERS = frozenset([".", ",", "[SEP]", "</s>"])
# Equal weights have no strongest link, whatever their last bits say.
STRONGER = 1.001

Rows = dict[str, Tensor]


@dataclass(frozen=True)
class Seen:
    """One probe as a model saw it: patterns [N, T, S], which keys were open [T, S], and its tokens."""

    patterns: Tensor
    open: Tensor
    ids: Sequence[int]
    words: Sequence[Word]

    @property
    def flat(self) -> Tensor:
        """The pattern that looks at every open key alike, [T, S]."""
        return self.open / self.open.sum(dim=1, keepdim=True)  # [T, S]

    @cached_property
    def ordinary(self) -> set[int]:
        """The tokens that are not special."""
        return {token for word in self.words if not word.special for token in word.tokens}

    @cached_property
    def choosing(self) -> Tensor:
        """Rows with more than one open key: the others have no choice."""
        return (self.open.sum(dim=1) > 1).nonzero()[:, 0]  # [R]


def position_rows(seen: Seen) -> tuple[Rows, Rows]:
    """Previous, next and self: the weight at one offset, and whether it is the row's largest."""
    weights, shares = {}, {}
    asked = [row for row in seen.choosing.tolist() if row in seen.ordinary]
    for name, offset in OFFSETS.items():
        rows = torch.tensor([row for row in asked if 0 <= row + offset < len(seen.ids)], dtype=torch.long)
        at = seen.patterns[:, rows, rows + offset]  # [N, R]
        places = (rows + offset).expand(len(at), -1)[..., None]  # [N, R, 1]
        others = seen.patterns[:, rows].scatter(2, places, 0.0).amax(dim=2)  # [N, R]
        weights[name], shares[name] = at, (at > others * STRONGER).float()
    return weights, shares


def spread_rows(seen: Seen) -> tuple[Rows, Rows]:
    """First, delimiter and broad, each with the number beside it."""
    rows = seen.choosing
    weights, flat = seen.patterns[:, rows], seen.flat[rows]  # [N, R, S], [R, S]
    ends = [token for word in seen.words if word.label in DELIMITERS for token in word.tokens]
    # A row that sees no delimiter, or nothing else, has no choice either.
    some = flat[:, ends].sum(dim=1)  # [R]
    choice = (some > 0) & (some < 1)  # [R]
    on_ends = weights[:, choice][:, :, ends].sum(dim=2)  # [N, R']
    entropy = torch.special.entr(weights).sum(dim=2) / seen.open[rows].sum(dim=1).log()  # [N, R]
    score = {"first": weights[:, :, 0], "delimiter": on_ends, "broad": entropy}
    beside = {
        "first": weights[:, :, 0] - flat[:, 0],
        "delimiter": on_ends - some[choice],
        "broad": torch.minimum(weights, flat).sum(dim=2),
    }
    return score, beside


def repeat_rows(patterns: Tensor, start: int, block: int) -> Rows:
    """Induction and duplicate, [N, block - 1], on tokens of which a block from `start` on is repeated.

    The second block's first token is left out: its first occurrence may be a model's sink.
    """
    repeated = range(start + block + 1, start + 2 * block)
    return repeat_rows_at(patterns, [(row, row - block) for row in repeated])


def repeat_rows_at(patterns: Tensor, repetitions: Sequence[tuple[int, int]]) -> Rows:
    """Weights from tokens to their first occurrences, and to the tokens after those, [N, R]."""
    kept = [pair for pair in repetitions if pair[1] + 1 < pair[0]]
    rows, earlier = torch.tensor(kept, dtype=torch.long).view(-1, 2).T  # [R]
    return {"induction": patterns[:, rows, earlier + 1], "duplicate": patterns[:, rows, earlier]}


def means(parts: Sequence[Mapping[str, Tensor]]) -> Rows:
    """The mean of each score over the rows of all probes, [N]; scores that have no row are left out."""
    names = dict.fromkeys(name for part in parts for name in part)
    joined = {name: torch.cat([part[name] for part in parts if name in part], dim=1) for name in names}
    return {name: rows.mean(dim=1) for name, rows in joined.items() if rows.shape[1]}
