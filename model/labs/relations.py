"""Heads that link words by their relation (Clark et al. 2019), beside rules that need no words at all."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.labs.pattern_scores import Seen
from model.labs.probes import Sentence
from model.labs.word_links import find_word, word_weights


@dataclass(frozen=True)
class Link:
    """The word that looks and those that are right, as places in a sentence."""

    looking: int
    right: frozenset[int]
    counted: frozenset[int]


def hits(seen: Seen, links: Sequence[Link]) -> Tensor:
    """Whether the most-attended word is right: [N, links]."""
    weights = word_weights(seen.patterns, seen.words)  # [N, W, W]
    found = [torch.zeros(len(weights), 0)]
    for link in links:
        counted = torch.tensor(sorted(link.counted))
        best = counted[weights[:, link.looking, counted].argmax(dim=1)]  # [N]
        found.append(torch.isin(best, torch.tensor(sorted(link.right))).float()[:, None])
    return torch.cat(found, dim=1)  # [N, links]


def best_fixed(links: Sequence[Link]) -> tuple[float, str]:
    """The largest share of links that one offset, or one place in the sentence, gets right; and which."""
    tries: dict[str, int] = {}
    for link in links:
        for target in link.right & link.counted:
            for rule in (f"offset {target - link.looking:+d}", f"place {target}"):
                tries[rule] = tries.get(rule, 0) + 1
    if not tries:
        return 0.0, "none"
    rule = max(tries, key=lambda name: tries[name])
    return tries[rule] / len(links), rule


def linked(sentence: Sentence, relation: str, seen: Seen) -> list[Link]:
    """The links of a sentence as places. Where a mask hides a single target, it looks at the word instead."""
    found = []
    for looking, targets in sentence.links.get(relation, ()):
        place = find_word(seen.words, looking)
        right = {find_word(seen.words, target) for target in targets}
        if not right & counted_words(seen, place):
            # Of a list's items the first one sees no other.
            if len(right) > 1:
                continue
            place, right = right.pop(), {place}
        found.append(
            Link(place, frozenset(right & counted_words(seen, place)), frozenset(counted_words(seen, place)))
        )
    return found


def counted_words(seen: Seen, looking: int) -> set[int]:
    """Words that may be the most attended: visible, not special, not the first and not the word itself."""
    ordinary = [place for place, word in enumerate(seen.words) if not word.special]
    opened = seen.open[seen.words[looking].tokens[-1]].tolist()
    return {
        place
        for place in ordinary[1:]
        if place != looking and all(opened[token] for token in seen.words[place].tokens)
    }
