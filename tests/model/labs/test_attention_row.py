import math

import numpy as np
import pytest
import torch

from model.errors import InputError
from model.labs import attention_row
from model.labs.attention_row import run
from model.labs.bench import Bench
from model.labs.one_head import Where
from model.labs.parameters.attention_row import AttentionRow
from model.labs.reading import run_text
from model.labs.result import Chart, Heatmap, Result, Series
from tests import numpy_attention

pytestmark = pytest.mark.weights


@pytest.fixture
def bench(real_bench: Bench) -> Bench:
    return real_bench


def _series(result: Result, name: str) -> Series:
    (found,) = [one for one in result.series if one.id == name]
    return found


def _lines(result: Result, name: str) -> dict[str, np.ndarray]:
    chart = _series(result, name)
    assert isinstance(chart, Chart)
    return {line.name: np.array([np.nan if y is None else float(y) for y in line.y]) for line in chart.lines}


CASES = (
    {"model": "minilm", "layer": 3, "head": 1, "query": 10, "key": 2},
    {"model": "minilm", "layer": 5, "head": 11, "query": 4, "key": 15, "mask": "causal"},
    {"model": "smollm2", "layer": 17, "head": 7, "query": 9, "key": 1},
    {"model": "smollm2", "layer": 2, "head": 4, "query": 3, "key": 8, "mask": "bidirectional"},
)


@pytest.mark.parametrize("given", CASES)
def test_every_stage_is_what_numpy_makes_of_q_k_and_v(bench, given):
    parameters = AttentionRow.model_validate(given)
    result = run(parameters, bench)
    mask = {"own": "causal" if parameters.model == "smollm2" else "bidirectional"}.get(
        parameters.mask, parameters.mask
    )
    plan = [{"kind": "set_mask", "rule": {"name": mask}}]
    ran = run_text(bench, parameters.model, parameters.text, plan)
    site = list(ran.trace.sites.values())[parameters.layer]
    q = site.q[parameters.head].double().numpy()
    group = parameters.head * len(site.k) // len(site.q)
    k, v = site.k[group].double().numpy(), site.v[group].double().numpy()
    width = {"minilm": 32, "smollm2": 64}[parameters.model]
    expected = numpy_attention.stages(
        q[None], k[None], [1 / math.sqrt(width)], [lambda i, j: mask != "causal" or j <= i]
    )
    row = {stage: values[0, parameters.query] for stage, values in expected.items()}
    scores = _lines(result, "scores")
    np.testing.assert_allclose(scores["raw q·k"], row["raw"], atol=2e-5)
    np.testing.assert_allclose(scores["scaled"], row["scaled"], atol=1e-5)
    closed = np.isinf(row["masked"])
    np.testing.assert_array_equal(np.isnan(scores["masked"]), closed)
    np.testing.assert_allclose(_lines(result, "weights")["weight"], row["weights"], atol=1e-6)
    vectors = _lines(result, "vectors")
    np.testing.assert_allclose(vectors["q × k"], q[parameters.query] * k[parameters.key], rtol=1e-12)
    np.testing.assert_allclose(_lines(result, "output")["Σ weight × v"], row["weights"] @ v, atol=1e-5)
    np.testing.assert_array_equal(vectors["v"], v[parameters.key])
    assert list(vectors)[:3] == ["q", "k", "v"]
    assert result.facts["raw"] == pytest.approx(row["raw"][parameters.key], abs=2e-5)
    assert result.facts["forbidden"] == closed.sum()
    pattern = _series(result, "pattern")
    assert isinstance(pattern, Heatmap)
    np.testing.assert_allclose(pattern.values.numpy(), expected["weights"][0], atol=1e-6)


@pytest.mark.parametrize("given", CASES)
def test_everything_adds_up(bench, given):
    result = run(AttentionRow.model_validate(given), bench)
    assert [check.name for check in result.checks if not check.holds] == []
    assert result.facts["row_sum"] == pytest.approx(1, abs=1e-6)
    assert result.facts["output_difference"] < 1e-5
    stages = result.facts["stages"]
    assert sum(row["softmax"] for row in stages) == pytest.approx(1, abs=1e-6)


def test_the_output_is_the_one_the_fused_forward_made(bench):
    """The check compares two computations: broken values are noticed."""
    result = run(AttentionRow(), bench)
    chart = _series(result, "output")
    assert isinstance(chart, Chart)
    mixed, recorded = (torch.as_tensor(line.y) for line in chart.lines)
    assert not torch.equal(mixed, recorded)
    torch.testing.assert_close(mixed, recorded, atol=1e-5, rtol=0)


def test_it_finds_the_animal(bench):
    """L3H1 of minilm links the pronoun to its antecedent."""
    facts = run(AttentionRow(), bench).facts
    assert (facts["query"], facts["key"], facts["strongest"]) == ("it", "animal", "animal")
    assert facts["weight"] == pytest.approx(0.677, abs=0.005)


def test_a_causal_mask_forbids_every_later_key_and_only_those(bench):
    own = run(AttentionRow(query=4, key=9), bench)
    causal = run(AttentionRow(query=4, key=9, mask="causal"), bench)
    assert own.facts["forbidden"] == 0
    assert own.facts["weight"] > 0
    assert causal.facts["forbidden"] == 11
    assert causal.facts["weight"] == 0
    assert [row["+ mask"] == "−∞" for row in causal.facts["stages"]] == [False] * 5 + [True] * 11
    assert "forbids this key" in causal.notes[0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layer": 6}, "minilm has no layer 6: choose one from 0 to 5"),
        ({"head": 12}, "minilm has no head 12: choose one from 0 to 11"),
        ({"query": 16}, "16 tokens and no query 16"),
        ({"key": 40}, "16 tokens and no key 40"),
        ({"text": "word " * 130}, "takes 128"),
        ({"text": "word " * 600}, "602 tokens"),
    ],
)
def test_what_is_not_there_is_said(bench, given, said):
    with pytest.raises(InputError, match=said):
        run(AttentionRow.model_validate(given), bench)


def test_a_text_of_one_token(bench):
    result = run(AttentionRow(model="smollm2", text="Hi", query=0, key=0), bench)
    assert result.facts["weight"] == 1
    assert all(check.holds for check in result.checks)


def test_what_the_formula_leaves_out_of_this_model_is_told(bench):
    bert, llama = run(AttentionRow(), bench).facts, run(AttentionRow(model="smollm2"), bench).facts
    assert (bert["added"], bert["rotated"], bert["marks"]) == (True, False, "[CLS] and [SEP]")
    assert (llama["added"], llama["rotated"], llama["marks"]) == (False, True, "")
    assert (bert["causal"], llama["causal"]) == (False, True)


def test_a_pattern_of_another_head_is_noticed(bench, monkeypatch):
    pattern = attention_row._pattern
    monkeypatch.setattr(attention_row, "_pattern", lambda ran, _: pattern(ran, Where(2, 5)))
    assert [check.about for check in run(AttentionRow(), bench).checks if not check.holds] == ["pattern"]
