import json
from dataclasses import replace
from typing import Any, get_args
from weakref import WeakKeyDictionary

import pytest
import torch

from model.labs import probing
from model.labs.bench import Bench, Cancelled
from model.labs.head_labels import run
from model.labs.label_tables import Found, several
from model.labs.parameters.heads import HeadLabels, Label
from model.labs.probes import read_probes
from model.labs.probing import Scores
from model.labs.result import Heatmap, Result

PROBES = read_probes()


def synthetic(**scores: tuple[list[float], list[float]]) -> Found:
    """Four heads in two layers, and a flat pattern, with these scores and numbers beside them."""
    given = {name: torch.tensor(values[0]) for name, values in scores.items()}
    beside = {name: torch.tensor(values[1]) for name, values in scores.items()}
    return Found(PROBES, Scores(given, beside, {}, dict.fromkeys(scores, 10)), heads=2)


def test_a_label_needs_both_numbers() -> None:
    found = synthetic(previous=([1.0, 0.9, 0.3, 0.5, 0.9], [1.0, 0.5, 1.0, 0.8, 0.0]))
    rule = PROBES.labels["previous"]
    assert found.gets(rule) == [True, False, False, True, False]
    assert found.labelled(rule) == [0, 3]
    assert [found.name(head) for head in range(4)] == ["L0H0", "L0H1", "L1H0", "L1H1"]


def test_a_head_may_have_several_labels() -> None:
    both = ([0.9, 0.0, 0.9, 0.0, 0.0], [0.9, 0.0, 0.9, 0.0, 0.0])
    one = ([0.9, 0.9, 0.0, 0.0, 0.0], [0.9, 0.9, 0.0, 0.0, 0.0])
    found = several(synthetic(previous=both, pronoun=one))
    assert found == {"labelled": 3, "several": 1, "several_example": "L0H0: previous, pronoun"}


def labels(result: Result) -> dict[str, list[str]]:
    """Labels by head."""
    found: dict[str, list[str]] = {}
    rows: Any = result.facts["labels"]
    for row in rows:
        found.setdefault(row["head"], []).append(row["label"])
    return found


@pytest.mark.weights
def test_labels_of_minilm(real_bench: Bench) -> None:
    result = run(HeadLabels(label="pronoun"), real_bench)
    found = labels(result)
    assert found["L0H2"] == ["previous"]
    assert "pronoun" in found["L3H1"]
    assert len(found["L3H1"]) > 1
    assert not any("induction" in names for names in found.values())
    assert all(check.holds for check in result.checks)
    best: Any = result.facts["best"]
    assert (best["name"], best["active"]) == ("L3H1", "active")
    assert best["here"] == "it → animal 0.677"
    assert best["score"] - best["beside"] == pytest.approx(result.facts["chosen"]["fixed"])  # type: ignore[index]
    assert result.facts["probe_version"] == PROBES.version
    scores = result.series[0]
    assert isinstance(scores, Heatmap)
    assert scores.values.shape == (6, 12)
    assert scores.values[3, 1].item() == pytest.approx(best["score"])
    json.dumps(result.as_json(), allow_nan=False)


@pytest.mark.weights
def test_smollm2_has_induction_heads_and_minilm_none(real_bench: Bench) -> None:
    text = "Mary met Tom Sawyer. Later Ann met Tom Sawyer."
    result = run(HeadLabels(model="smollm2", label="induction", text=text), real_bench)
    best: Any = result.facts["best"]
    assert best["score"] > 0.9
    assert best["beside"] > 0.9
    assert best["active"] == "active"
    assert "next" not in {name for names in labels(result).values() for name in names}
    idle: Any = run(HeadLabels(model="smollm2", label="induction"), real_bench).facts["best"]
    assert idle["active"] in ("not active", "cannot tell")


@pytest.mark.weights
@pytest.mark.parametrize(
    ("label", "text", "here", "active"),
    [
        ("pronoun", "The dog sleeps.", "no pronoun", "cannot tell"),
        ("duplicate", "The dog sleeps", "nothing repeats", "cannot tell"),
        ("previous", "The dog sleeps.", None, "active"),
    ],
)
def test_a_text_may_give_no_occasion(
    real_bench: Bench, label: Label, text: str, here: str | None, active: str
) -> None:
    best: Any = run(HeadLabels(label=label, text=text), real_bench).facts["best"]
    assert best["active"] == active
    assert here is None or best["here"] == here


@pytest.mark.weights
def test_scores_are_found_once_for_a_model(real_bench: Bench) -> None:
    told: list[float] = []
    bench = replace(real_bench, report=lambda share, *_: told.append(share), findings=WeakKeyDictionary())
    first = run(HeadLabels(), bench)
    asked = len(told)
    assert asked > len(PROBES.sentences)
    assert told == sorted(told)
    second = run(HeadLabels(text="Another text."), bench)
    assert len(told) == asked
    assert second.facts["summary"] == first.facts["summary"]


@pytest.mark.weights
def test_leaving_stops_it_and_keeps_nothing(real_bench: Bench) -> None:
    def leave(*_: object) -> None:
        raise Cancelled

    bench = replace(real_bench, report=leave, findings=WeakKeyDictionary())
    with pytest.raises(Cancelled):
        run(HeadLabels(), bench)
    assert not any(bench.findings.values())


@pytest.mark.weights
def test_a_model_that_knows_no_english_is_only_given_random_tokens(real_bench: Bench) -> None:
    result = run(HeadLabels(model="rxnmapper", label="pronoun", text="CCO.CC(=O)O"), real_bench)
    assert [row["label"] for row in result.facts["summary"]] == ["induction", "duplicate"]  # type: ignore[attr-defined]
    assert len(result.notes) == 2
    assert result.facts["best"] is None


@pytest.mark.weights
@pytest.mark.parametrize("label", ["agreement", "adjective", "list"])
def test_nobody_says_whether_a_link_in_the_text_is_of_the_kind(real_bench: Bench, label: Label) -> None:
    best: Any = run(HeadLabels(label=label), real_bench).facts["best"]
    assert best["active"] == "cannot tell"
    assert best["here"] in best["said"]
    assert "whatever these words are" in best["said"]


# A diagonal stays where it is when a matrix is turned over.
STILL = ("self",)
LABELS: tuple[Label, ...] = get_args(Label)


@pytest.mark.weights
def test_scores_are_counted_again_and_wrong_ones_seen(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks(bench: Bench) -> dict[Label, bool]:
        return {
            label: all(check.holds for check in run(HeadLabels(label=label), bench).checks)
            for label in LABELS
        }

    assert all(checks(real_bench).values())
    right = probing.all_weights
    for wrong in (lambda sites: right(sites).mT, lambda sites: right(sites).flip(0)):
        monkeypatch.setattr(probing, "all_weights", wrong)
        found = checks(replace(real_bench, findings=WeakKeyDictionary()))
        assert not any(holds for label, holds in found.items() if label not in STILL), found
