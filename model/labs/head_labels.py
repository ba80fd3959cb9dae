"""Labels of heads from a fixed probe set, with their scores, and which are at work in the user's text."""

import torch

from model.labs import label_tables as tables
from model.labs.bench import Bench
from model.labs.head_activity import Activity
from model.labs.label_tables import Found
from model.labs.parameters.heads import HeadLabels
from model.labs.pattern_scores import Seen, position_rows
from model.labs.probes import ProbeSet, read_probes
from model.labs.probing import Scores, measure, seen_of
from model.labs.result import Check, Result
from model.labs.word_links import Word, read_short
from model.loading import LoadedModel

MAX_TOKENS = 256
EXACT = 8


def run(parameters: HeadLabels, bench: Bench) -> Result:
    """Labels every head of a model. Raises what `read_short` raises, and InputError for a tiny vocabulary."""
    loaded, probes = bench.model(parameters.model), read_probes()
    encoded = read_short(loaded, parameters.model, parameters.text, MAX_TOKENS)
    found = _found(loaded, parameters.model, probes, bench)
    activity = Activity(probes, seen_of(loaded, encoded, parameters.text))
    rule = probes.labels[parameters.label]
    series = [*tables.scores_by_head(found, rule), tables.labels_a_head(found)]
    facts = {
        "probe_version": probes.version,
        "sentences": len(probes.sentences),
        "text": parameters.text,
        "model": parameters.model,
        "stack": loaded.config.stack.self_sites[0].rpartition(".")[0],
        "heads": len(found.scores.score["induction"]) - 1,
        "labels": tables.label_rows(found, activity),
        "summary": tables.summary(found),
        "definitions": tables.definitions(found),
        "table": tables.first_rows(found, activity, rule),
        "chosen": tables.chosen(found, rule),
        "best": tables.best(found, activity, rule),
        **tables.several(found),
    }
    return Result(series, _checks(found), facts, [*found.scores.notes, *tables.unmeasured(found, rule)])


def _found(loaded: LoadedModel, model_id: str, probes: ProbeSet, bench: Bench) -> Found:
    """The scores, found once for a loaded model and kept with it."""
    kept = bench.findings.setdefault(loaded.transformer, {})
    name = f"head scores, probe set {probes.version}"
    if not isinstance(kept.get(name), Scores):
        words = f"probing {model_id} with {len(probes.sentences)} sentences"
        kept[name] = measure(loaded, model_id, probes, lambda share: bench.report(0.95 * share, words, None))
    scores = kept[name]
    assert isinstance(scores, Scores)
    return Found(probes, scores, loaded.config.stack.attention.heads)


def _checks(found: Found) -> list[Check]:
    """What is known beforehand: a flat pattern is broad and nothing else, and an exact pattern scores 1."""
    flat = sum(
        got[-1] for rule in found.probes.labels.values() if rule.name != "broad" and (got := found.gets(rule))
    )
    back = torch.eye(EXACT).roll(-1, dims=1)  # [T, T]
    words = [Word("word", (place,), special=False) for place in range(EXACT)]
    exact = Seen(back[None], torch.ones(EXACT, EXACT, dtype=torch.bool), range(EXACT), words)
    previous = position_rows(exact)[0]["previous"].mean().item()
    return [
        Check("labels of a flat pattern, “broad” apart", 0, flat),
        Check("“previous” of a pattern that looks one token back", 1, previous, 1e-6),
    ]
