"""Whether a labelled head is at work in a text: by its score there, or a relation's strongest link."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor

from model.labs.pattern_scores import Rows, Seen, means, position_rows, repeat_rows_at, spread_rows
from model.labs.probes import RELATIONS, LabelRule, ProbeSet
from model.labs.relations import counted_words
from model.labs.word_links import word_weights

Here = tuple[str, bool | None]


class Activity:
    """What every head of a model does in one text."""

    def __init__(self, probes: ProbeSet, seen: Seen) -> None:
        self._probes, self._seen = probes, seen

    def said(self, rule: LabelRule, head: int, name: str) -> str:
        """What head `name` does in the text, as a sentence."""
        here, active = self.of(rule, head)
        if active is not None:
            does = "links" if rule.name in RELATIONS else "scores"
            return f"In your text {name} {does} {here}: it is {'active' if active else 'not active'} there."
        if rule.name in RELATIONS and "→" in here:
            return (
                f"The strongest link of {name} in your text is {here}, whatever these words are: only you can"
                " say whether it is of the kind that the label means."
            )
        return f"Of {name} your text shows nothing: {here}."

    def of(self, rule: LabelRule, head: int) -> Here:
        """What a head does for a label, in words, and whether that is enough; None where nobody can tell."""
        if rule.name in RELATIONS:
            return self._linked(rule.name, head)
        if rule.name not in self._scores:
            return "nothing repeats" if rule.name in ("induction", "duplicate") else "no such token", None
        score = self._scores[rule.name][head].item()
        return f"{score:.3g}", score >= rule.at_least

    @cached_property
    def _scores(self) -> Rows:
        again = repeat_rows_at(self._seen.patterns, _repetitions(self._seen))
        return means([position_rows(self._seen)[0], spread_rows(self._seen)[0], again])

    def _linked(self, relation: str, head: int) -> Here:
        words = self._seen.words
        found = self._strongest[relation == "pronoun"]
        if found is None:
            return "no pronoun" if relation == "pronoun" else "no two words", None
        weight, place = found[0][head].item(), int(found[1][head])
        looking, target = divmod(place, len(words))
        link = f"{words[looking].label} → {words[target].label} {weight:.3g}"
        # Which words a verb, an adjective or a list belongs to, nobody here can tell.
        return link, weight >= self._probes.active_weight if relation == "pronoun" else None

    @cached_property
    def _strongest(self) -> Mapping[bool, tuple[Tensor, Tensor] | None]:
        """Each head's strongest link between two words, weight [N] and place [N]; True: pronouns'."""
        words = self._seen.words
        weights = word_weights(self._seen.patterns, words)  # [N, W, W]
        every = [place for place, word in enumerate(words) if not word.special]
        pronouns = [place for place in every if words[place].label.casefold() in self._probes.pronouns]
        return {only: self._largest(weights, looking) for only, looking in ((False, every), (True, pronouns))}

    def _largest(self, weights: Tensor, looking: Sequence[int]) -> tuple[Tensor, Tensor] | None:
        counts = torch.zeros(weights.shape[1:], dtype=torch.bool)  # [W, W]
        for place in looking:
            counts[place, sorted(counted_words(self._seen, place))] = True
        if not counts.any():
            return None
        largest = weights.masked_fill(~counts, -1.0).flatten(1).max(dim=1)  # [N]
        return largest.values, largest.indices


def _repetitions(seen: Seen) -> list[tuple[int, int]]:
    """Each token that stood before, with its first occurrence; special ones apart."""
    first: dict[int, int] = {}
    return [
        (place, earlier)
        for place, token_id in enumerate(seen.ids)
        if place in seen.ordinary and (earlier := first.setdefault(token_id, place)) != place
    ]
