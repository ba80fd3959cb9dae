"""Labels of heads from a fixed probe set, with their scores, and which are at work in the user's text."""

from model.labs import label_tables as tables
from model.labs.bench import Bench
from model.labs.head_activity import Activity
from model.labs.head_recount import recount
from model.labs.label_tables import Found
from model.labs.parameters.heads import HeadLabels
from model.labs.probes import LabelRule, ProbeSet, read_probes
from model.labs.probing import Scores, measure, seen_of
from model.labs.result import Check, Result
from model.labs.word_links import read_short
from model.labs.words import counted
from model.loading import LoadedModel

MAX_TOKENS = 256


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
    return Result(
        series, _checks(loaded, found, rule), facts, [*found.scores.notes, *tables.unmeasured(found, rule)]
    )


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


def _checks(loaded: LoadedModel, found: Found, rule: LabelRule) -> list[Check]:
    """A flat pattern gets no label but “broad”; and the first head's score, counted again by other means."""
    flat = sum(
        got[-1] for rule in found.probes.labels.values() if rule.name != "broad" and (got := found.gets(rule))
    )
    checks = [Check("labels of a flat pattern, “broad” apart", 0, flat)]
    if rule.name in found.scores.score:
        score = found.scores.score[rule.name]
        head = int(score[:-1].argmax())
        again_from = recount(loaded, found.scores, rule.name, head, found.heads)
        again = counted(again_from.probes, "probe")
        # Sums of weights in fp32 and in fp64.
        checks += [
            Check(
                f"“{rule.name}” of {found.name(head)}, {again} read again weight by weight",
                again_from.score,
                score[head].item(),
                1e-4,
                about="scores",
            ),
            Check(
                f"“{rule.name}” of {found.name(head)}, largest difference in a single occasion",
                0.0,
                again_from.furthest,
                1e-4,
                about="scores",
            ),
        ]
    return checks
