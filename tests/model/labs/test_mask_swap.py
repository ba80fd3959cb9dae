import numpy as np
import pytest
import torch

from model.errors import InputError
from model.inputs import Inputs
from model.labs import mask_swap
from model.labs.bench import Bench
from model.labs.mask_swap import run
from model.labs.one_head import Where
from model.labs.parameters.attention_row import SENTENCE, MaskSwap
from model.labs.result import Chart, Heatmap, Result, Series
from model.plan import Plan

pytestmark = pytest.mark.weights


@pytest.fixture
def bench(real_bench: Bench) -> Bench:
    return real_bench


def _series(result: Result, name: str) -> Series:
    (found,) = [one for one in result.series if one.id == name]
    return found


def _matrix(result: Result, name: str) -> np.ndarray:
    found = _series(result, name)
    assert isinstance(found, Heatmap)
    return found.values.numpy()


def _lines(result: Result, name: str) -> list[np.ndarray]:
    found = _series(result, name)
    assert isinstance(found, Chart)
    return [torch.as_tensor(line.y).numpy() for line in found.lines]


def test_a_causal_mask_leaves_a_triangle_and_keeps_the_rest_in_proportion(bench):
    result = run(MaskSwap(mask="causal", layer=0, head=3), bench)
    own, chosen = _matrix(result, "own"), _matrix(result, "chosen")
    assert (np.triu(own, 1) > 0).any()
    assert (np.triu(chosen, 1) == 0).all()
    # In layer 0 q and k are the same under both masks: what is left is only shared out anew.
    kept = np.tril(own)
    np.testing.assert_allclose(chosen, kept / kept.sum(1, keepdims=True), atol=1e-5)
    assert (result.facts["forbidden"], result.facts["pairs"]) == (16 * 15 / 2, 16 * 16)


def test_under_a_causal_mask_nothing_leaks_from_the_ending(bench):
    """“It” cannot know whether the sentence ends in “tired” or in “wide” unless it may look ahead."""
    result = run(MaskSwap(mask="causal"), bench)
    own, causal = _lines(result, "ahead")
    assert len(own) == 13
    assert own.min() > 0.01
    assert causal.max() <= 1e-5
    assert all(check.holds for check in result.checks)
    assert [check.name for check in result.checks if check.about == "ahead"] == [
        "what earlier tokens notice under the chosen mask"
    ]


def test_a_decoder_made_to_look_ahead_does(bench):
    result = run(MaskSwap(model="smollm2", mask="bidirectional"), bench)
    own, chosen = _lines(result, "ahead")
    assert own.max() <= 1e-5
    assert chosen.min() > 1e-3
    words = result.facts["readout"]
    assert [row["own mask"] for row in words] != [row["chosen mask"] for row in words]
    assert all(0 < row["p, own mask"] < 1 for row in words)


def test_changes_are_those_of_two_runs(bench):
    loaded = bench.model("minilm")
    ids = loaded.encoder.encode(SENTENCE, None).ids
    first = loaded.transformer.trace(Inputs.of(ids)).final
    plan = Plan.parse([{"kind": "set_mask", "rule": {"name": "window", "left": 3, "right": 0}}])
    second = loaded.transformer.trace(Inputs.of(ids), plan).final
    expected = ((second - first).norm(dim=1) / first.norm(dim=1)).numpy()
    (found,) = _lines(run(MaskSwap(mask="window", reach=3), bench), "changes")
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("mask", "reach", "sees"),
    [
        ("window", 2, lambda i, j: i - 2 <= j <= i),
        ("prefix", 4, lambda i, j: j <= i or j < 4),
        ("bidirectional", 9, lambda _, __: True),
        ("causal", 0, lambda i, j: j <= i),
    ],
)
def test_masks_show_what_they_say(bench, mask, reach, sees):
    chosen = _matrix(run(MaskSwap(model="smollm2", mask=mask, reach=reach), bench), "chosen")
    allowed = np.array([[sees(i, j) for j in range(13)] for i in range(13)])
    np.testing.assert_array_equal(chosen > 0, allowed)


def test_the_own_mask_changes_nothing_and_says_so(bench):
    result = run(MaskSwap(model="smollm2", mask="causal"), bench)
    assert result.facts["moved_most"] == 0
    assert "choose another one" in result.notes[0]
    assert (result.facts["moved_token"], result.facts["changes"]) == (None, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": "alone"}, "at least two words"),
        ({"text": "  \n "}, "is blank"),
        ({"ending": "tired."}, "already ends in “tired.”"),
        (
            {"text": "She wrote the letter 𐎀", "ending": "𐎂"},
            "“𐎀” from “𐎂”: both become the same tokens, “.UNK.”",
        ),
        ({"text": "They slept tired", "ending": "TIRED"}, "both become the same tokens, “tired” at the end"),
        ({"layer": 99}, "minilm has no layer 99"),
        ({"text": "two " * 140}, "this lab takes 128"),
    ],
)
def test_what_cannot_be_compared_is_said(bench, given, said):
    with pytest.raises(InputError, match=said):
        run(MaskSwap.model_validate(given), bench)


def test_words_of_the_ending_are_named_and_tokens_keep_their_spaces(bench):
    facts = run(MaskSwap(ending="extremely tired."), bench).facts
    assert (facts["last"], facts["other_last"]) == ("tired.", "extremely tired.")
    facts = run(MaskSwap(model="smollm2", mask="bidirectional"), bench).facts
    for column in ("own mask", "chosen mask"):
        words = [row[column] for row in facts["readout"]]
        assert len(set(words)) == len(words)
        assert not any(word.startswith(" ") for word in words)


def test_an_ending_that_only_goes_on_leaves_the_whole_text_before(bench):
    result = run(MaskSwap(model="smollm2", text="She is", ending="is very"), bench)
    assert result.facts["before"] == 2
    assert all(check.holds for check in result.checks)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mask": "causal"}, "no longer look ahead"),
        ({"model": "smollm2", "mask": "bidirectional"}, "suddenly look ahead"),
        ({"model": "smollm2", "mask": "window"}, "other tokens"),
    ],
)
def test_what_the_mask_changes_is_said_as_it_is(bench, given, said):
    assert said in run(MaskSwap.model_validate(given), bench).facts["changes"]


@pytest.mark.parametrize("given", [{}, {"model": "smollm2", "mask": "window"}])
def test_a_pattern_of_another_head_is_noticed(bench, monkeypatch, given):
    pattern = mask_swap._pattern
    monkeypatch.setattr(mask_swap, "_pattern", lambda name, ran, _: pattern(name, ran, Where(2, 5)))
    checks = run(MaskSwap.model_validate(given), bench).checks
    failed = [check.about for check in checks if not check.holds and "by hand" in check.name]
    assert failed == ["own", "chosen"]
