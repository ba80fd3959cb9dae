"""Running the probe set on a model: what its heads score on repeated random tokens and on sentences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from model.labs.pattern_scores import Rows, Seen, means, position_rows, repeat_rows, spread_rows
from model.labs.probes import RELATIONS, ProbeSet, Sentence
from model.labs.random_tokens import ordinary_tokens, wrapped
from model.labs.reading import encoder_of, run_ids
from model.labs.relations import Link, best_fixed, hits, linked
from model.labs.word_links import all_weights, words_of
from model.loading import LoadedModel
from model.scores import open_keys
from model.text import Encoded
from model.trace import Trace


@dataclass
class Scores:
    """Scores [N + 1] and what stands beside them, by label: N heads, then a flat pattern on the same probes.

    `baselines` are what one fixed offset or place reaches, in words. `probes` hold what each probe gave.
    `notes` say what could not be measured.
    """

    score: Rows = field(default_factory=dict)
    beside: Rows = field(default_factory=dict)
    baselines: dict[str, tuple[float, str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    probes: list["Probe"] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Probe:
    """One probe and its rows [N + 1, R] by label: a sentence, or repeated tokens from `start` on."""

    encoded: Encoded
    rows: Rows
    sentence: Sentence | None = None
    start: int = 0
    block: int = 0


def measure(loaded: LoadedModel, model_id: str, probes: ProbeSet, tell: Callable[[float], None]) -> Scores:
    """Every score of every head; `tell` hears the share done. Raises InputError, as `encoder_of` does."""
    encoder_of(loaded, model_id)
    found = Scores()
    _repeats(loaded, probes, found)
    tell(0.1)
    if not reads_english(loaded, probes):
        found.notes.append(
            f"{model_id} does not know the words of the probe sentences: only random tokens were measured."
        )
        return found
    _sentences(loaded, model_id, probes, found, tell)
    return found


def reads_english(loaded: LoadedModel, probes: ProbeSet) -> bool:
    """Whether the model's vocabulary holds the probe sentences, so that no token in them is unknown."""
    assert loaded.encoder is not None
    return not loaded.encoder.encode(probes.sentences[0].text).notices


def seen_of(loaded: LoadedModel, encoded: Encoded, text: str) -> Seen:
    """A text as the heads see it."""
    trace = run_ids(loaded, encoded)
    return Seen(all_weights(list(trace.sites.values())), opened(trace), encoded.ids, words_of(encoded, text))


def opened(trace: Trace) -> Tensor:
    """Which keys a model's first head opens to each query, bool [T, S]."""
    site = next(iter(trace.sites.values()))
    return open_keys(site.rule, range(1), range(site.queries), range(site.keys), "cpu")[0]


def _sentences(
    loaded: LoadedModel, model_id: str, probes: ProbeSet, found: Scores, tell: Callable[[float], None]
) -> None:
    scores: list[Rows] = []
    besides: list[Rows] = []
    links: dict[str, list[Link]] = {relation: [] for relation in RELATIONS}
    for number, sentence in enumerate(probes.sentences, start=1):
        encoded = encoder_of(loaded, model_id).encode(sentence.text)
        seen = with_flat(seen_of(loaded, encoded, sentence.text))
        rows: Rows = {}
        for measured in (position_rows(seen), spread_rows(seen)):
            rows |= measured[0]
            besides.append(measured[1])
        for relation in RELATIONS:
            linked_here = linked(sentence, relation, seen)
            links[relation] += linked_here
            rows[relation] = hits(seen, linked_here)
        scores.append(rows)
        found.probes.append(Probe(encoded, rows, sentence))
        tell(0.1 + 0.9 * number / len(probes.sentences))
    found.counts |= {
        name: sum(rows[name].shape[1] for rows in scores if name in rows) for name in _names(scores)
    }
    found.score |= means(scores)
    found.beside |= means(besides)
    for relation in RELATIONS:
        found.baselines[relation] = best_fixed(links[relation])
        found.beside[relation] = found.score[relation] - found.baselines[relation][0]


def _names(parts: Sequence[Rows]) -> Iterator[str]:
    return iter(dict.fromkeys(name for part in parts for name in part))


def with_flat(seen: Seen) -> Seen:
    """The same probe with one head more, that looks at every open key alike."""
    return Seen(torch.cat([seen.patterns, seen.flat[None]]), seen.open, seen.ids, seen.words)


def _repeats(loaded: LoadedModel, probes: ProbeSet, found: Scores) -> None:
    assert loaded.encoder is not None
    generator = torch.Generator().manual_seed(probes.seed)
    repeated: list[Rows] = []
    fresh: list[Rows] = []
    for block in probes.blocks:
        drawn = ordinary_tokens(loaded.encoder, 2 * block, generator)
        for ids, rows in ((drawn[:block] * 2, repeated), (drawn, fresh)):
            encoded, start = wrapped(loaded.encoder, ids)
            seen = with_flat(seen_of(loaded, encoded, ""))
            rows.append(repeat_rows(seen.patterns, start, block))
            if rows is repeated:
                found.probes.append(Probe(encoded, rows[-1], None, start, block))
    found.score |= means(repeated)
    control = means(fresh)
    found.beside |= {name: found.score[name] - control[name] for name in control}
    found.counts |= {name: sum(rows[name].shape[1] for rows in repeated) for name in control}
