"""A head's score counted a second time: single weights of its own layer's attention, in plain loops.

Nothing of `pattern_scores` or `word_links.word_weights` is used, so that one of the two is wrong where they
differ.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from model.labs.pattern_scores import DELIMITERS, OFFSETS
from model.labs.probes import RELATIONS, Sentence
from model.labs.probing import Probe, Scores
from model.labs.reading import run_ids
from model.labs.word_links import Word, words_of
from model.loading import LoadedModel
from model.scores import open_keys

# So many probes run again, those that give the head most; the rest is taken as it was measured.
AGAIN = 4

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Recount:
    """A score of which some probes were counted again, and the largest difference in a single occasion."""

    score: float
    probes: int
    furthest: float


@dataclass(frozen=True)
class _Read:
    """A probe as one head reads it: its weights, which keys it may see, and the words."""

    weights: Matrix
    open: Sequence[Sequence[bool]]
    words: Sequence[Word]
    probe: Probe


def recount(loaded: LoadedModel, scores: Scores, label: str, head: int, heads: int) -> Recount:
    """The score of a head, counted through all layers of `heads`; the probes that give it most run again."""
    layer, place = divmod(head, heads)
    with_rows = [probe for probe in scores.probes if label in probe.rows and probe.rows[label].shape[1]]
    first = sorted(with_rows, key=lambda probe: -probe.rows[label][head].sum().item())[:AGAIN]
    values: list[float] = []
    furthest = 0.0
    for probe in with_rows:
        kept: list[float] = probe.rows[label][head].tolist()
        rows = (
            _rows(label, _read(loaded, probe, layer, place)) if any(probe is one for one in first) else kept
        )
        values += rows
        apart = [abs(one - other) for one, other in zip(rows, kept, strict=False)]
        furthest = max([furthest, *apart]) if len(rows) == len(kept) else math.inf
    return Recount(math.fsum(values) / max(1, len(values)), len(first), furthest)


def _read(loaded: LoadedModel, probe: Probe, layer: int, head: int) -> _Read:
    trace = run_ids(loaded, probe.encoded)
    site = trace.sites[loaded.config.stack.self_sites[layer]]
    tokens = range(site.queries)
    weights = site.attention(range(head, head + 1), tokens)[0].double().cpu().tolist()
    opened = open_keys(site.rule, range(1), tokens, range(site.keys), "cpu")[0].tolist()
    text = probe.sentence.text if probe.sentence else ""
    return _Read(weights, opened, words_of(probe.encoded, text), probe)


def _rows(label: str, read: _Read) -> list[float]:
    if label in OFFSETS:
        return _at_offset(read, OFFSETS[label])
    if label in ("induction", "duplicate"):
        return _repeated(read, 1 if label == "induction" else 0)
    if label in RELATIONS:
        assert read.probe.sentence is not None
        return _linked(read, read.probe.sentence, label)
    spread: dict[str, Callable[[_Read], list[float]]] = {
        "first": lambda one: [one.weights[at][0] for at in _choosing(one)],
        "delimiter": _on_ends,
        "broad": _entropies,
    }
    return spread[label](read)


def _choosing(read: _Read) -> list[int]:
    return [at for at, keys in enumerate(read.open) if sum(keys) > 1]


def _at_offset(read: _Read, offset: int) -> list[float]:
    special = {token for word in read.words if word.special for token in word.tokens}
    asked = [at for at in _choosing(read) if at not in special]
    return [read.weights[at][at + offset] for at in asked if 0 <= at + offset < len(read.weights)]


def _repeated(read: _Read, shift: int) -> list[float]:
    block = read.probe.block
    second = read.probe.start + block
    return [read.weights[at][at - block + shift] for at in range(second + 1, second + block)]


def _on_ends(read: _Read) -> list[float]:
    ends = {token for word in read.words if word.label in DELIMITERS for token in word.tokens}
    rows = []
    for at in _choosing(read):
        seen = {key for key, is_open in enumerate(read.open[at]) if is_open}
        if seen & ends and seen - ends:
            rows.append(sum(read.weights[at][key] for key in ends))
    return rows


def _entropies(read: _Read) -> list[float]:
    return [
        -sum(weight * math.log(weight) for weight in read.weights[at] if weight > 0)
        / math.log(sum(read.open[at]))
        for at in _choosing(read)
    ]


def _linked(read: _Read, sentence: Sentence, relation: str) -> list[float]:
    """Whether the word looked at most is right; a pair that a mask hides is asked the other way round."""
    places = {word.label: place for place, word in enumerate(read.words)}
    rows = []
    for looking, targets in sentence.links.get(relation, ()):
        at, right = places[looking], {places[target] for target in targets}
        if not right & set(_countable(read, at)):
            if len(right) > 1:
                continue
            at, right = right.pop(), {at}
        most = max(_countable(read, at), key=lambda place: _between(read, at, place), default=None)
        rows.append(float(most in right))
    return rows


def _countable(read: _Read, at: int) -> list[int]:
    seen = read.open[read.words[at].tokens[-1]]
    ordinary = [place for place, word in enumerate(read.words) if not word.special][1:]
    return [place for place in ordinary if place != at and all(seen[key] for key in read.words[place].tokens)]


def _between(read: _Read, at: int, place: int) -> float:
    looking, target = read.words[at].tokens, read.words[place].tokens
    return sum(read.weights[query][key] for query in looking for key in target) / len(looking)
