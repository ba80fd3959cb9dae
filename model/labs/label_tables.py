"""The scores of a model's heads as labels, tables and heat maps."""

from dataclasses import dataclass

from torch import Tensor, stack, tensor

from model.labs.head_activity import Activity
from model.labs.probes import LabelRule, ProbeSet
from model.labs.probing import Scores
from model.labs.result import Axis, Heatmap

SHOWN = 8

Row = dict[str, object]


@dataclass(frozen=True)
class Found:
    """Scores of one model's heads, and which label they come to: L layers of H heads."""

    probes: ProbeSet
    scores: Scores
    heads: int

    def gets(self, rule: LabelRule) -> list[bool]:
        """Whether each head, and last a flat pattern, gets a label."""
        if rule.name not in self.scores.score:
            return []
        score, beside = self.scores.score[rule.name], self.scores.beside[rule.name]
        return ((score >= rule.at_least) & (beside >= rule.beside_at_least)).tolist()

    def labelled(self, rule: LabelRule) -> list[int]:
        """The heads that get a label, the highest score first."""
        gets = self.gets(rule)[:-1]
        return sorted(
            (head for head, got in enumerate(gets) if got),
            key=lambda head: -self.scores.score[rule.name][head],
        )

    def name(self, head: int) -> str:
        """A head as L3H1."""
        return f"L{head // self.heads}H{head % self.heads}"


def several(found: Found) -> dict[str, object]:
    """How many heads have a label, how many have several, and the one that has most."""
    labels: dict[int, list[str]] = {}
    for rule in found.probes.labels.values():
        for head in found.labelled(rule):
            labels.setdefault(head, []).append(rule.name)
    many = {head: names for head, names in sorted(labels.items()) if len(names) > 1}
    most = max(many, key=lambda head: len(many[head]), default=None)
    example = "none" if most is None else f"{found.name(most)}: {', '.join(many[most])}"
    return {"labelled": len(labels), "several": len(many), "several_example": example}


def labels_a_head(found: Found) -> Heatmap:
    """How many labels each head has."""
    gets = [tensor(got[:-1]) for rule in found.probes.labels.values() if (got := found.gets(rule))]
    return _by_head("labels", "Labels a head", stack(gets).sum(dim=0).float(), found.heads, "labels")


def scores_by_head(found: Found, rule: LabelRule) -> list[Heatmap]:
    """Every head's score for one label; nothing where that was not measured."""
    if rule.name not in found.scores.score:
        return []
    title = f"Score of every head for “{rule.name}”"
    return [_by_head("scores", title, found.scores.score[rule.name][:-1], found.heads, "score")]


def _by_head(name: str, title: str, values: Tensor, heads: int, unit: str) -> Heatmap:
    by_layer = values.view(-1, heads)  # [L, H]
    rows = list(range(len(by_layer)))
    return Heatmap(name, title, Axis("head"), Axis("layer"), list(range(heads)), rows, by_layer, unit)


def label_rows(found: Found, activity: Activity) -> list[Row]:
    """Every label that was given, with its score, and whether the head is at work in the text."""
    return [
        {"label": rule.name, **_row(found, activity, rule, head)}
        for rule in found.probes.labels.values()
        for head in found.labelled(rule)
    ]


def first_rows(found: Found, activity: Activity, rule: LabelRule) -> list[Row]:
    """The heads that come first by one score, whether it makes a label or not."""
    if rule.name not in found.scores.score:
        return []
    first = found.scores.score[rule.name][:-1].argsort(descending=True)[:SHOWN].tolist()
    gets = found.gets(rule)
    return [
        {**_row(found, activity, rule, head), "labelled": "yes" if gets[head] else "no"} for head in first
    ]


def _row(found: Found, activity: Activity, rule: LabelRule, head: int) -> Row:
    here, active = activity.of(rule, head)
    return {
        "head": found.name(head),
        "score": found.scores.score[rule.name][head].item(),
        "second number": found.scores.beside[rule.name][head].item(),
        "in your text": here,
        "active there": {True: "yes", False: "no", None: "cannot tell"}[active],
    }


def best(found: Found, activity: Activity, rule: LabelRule) -> Row | None:
    """The head with the highest score for a label, as a link to it needs it; None without a measurement."""
    if rule.name not in found.scores.score:
        return None
    head = int(found.scores.score[rule.name][:-1].argmax())
    here, active = activity.of(rule, head)
    return {
        "name": found.name(head),
        "layer": head // found.heads,
        "head": head % found.heads,
        "score": found.scores.score[rule.name][head].item(),
        "beside": found.scores.beside[rule.name][head].item(),
        "here": here,
        "active": {True: "active", False: "not active", None: "cannot tell"}[active],
        "said": activity.said(rule, head, found.name(head)),
    }


def chosen(found: Found, rule: LabelRule) -> Row:
    """One label: its definition, its bounds, and what a flat pattern and a fixed rule reach."""
    flat = found.scores.score.get(rule.name)
    fixed, how = found.scores.baselines.get(rule.name, (None, None))
    return {
        "name": rule.name,
        "definition": rule.definition,
        "beside": rule.beside,
        "at_least": rule.at_least,
        "beside_at_least": rule.beside_at_least,
        "labelled": len(found.labelled(rule)),
        "flat": None if flat is None else flat[-1].item(),
        "fixed": fixed,
        "fixed_rule": how,
        "occasions": found.scores.counts.get(rule.name, 0),
    }


def summary(found: Found) -> list[Row]:
    """One row a label that was measured."""
    rows: list[Row] = []
    for rule in found.probes.labels.values():
        if rule.name in found.scores.score:
            score = found.scores.score[rule.name]
            head = int(score[:-1].argmax())
            rows.append({
                "label": rule.name,
                "heads labelled": len(found.labelled(rule)),
                "best head": found.name(head),
                "its score": score[head].item(),
                "flat pattern": score[-1].item(),
                "best fixed rule": found.scores.baselines.get(rule.name, (None, ""))[0],
                "occasions": found.scores.counts[rule.name],
            })  # fmt: skip
    return rows


def definitions(found: Found) -> list[Row]:
    """What every label means."""
    return [
        {
            "label": rule.name,
            "score": rule.definition,
            "at least": rule.at_least,
            "second number": rule.beside,
            "at least, of the second": rule.beside_at_least,
        }
        for rule in found.probes.labels.values()
    ]


def unmeasured(found: Found, rule: LabelRule) -> list[str]:
    """Says so where a label has no score."""
    if rule.name in found.scores.score:
        return []
    return [f"There is no score for “{rule.name}”: this model met no occasion for it in the probe set."]
