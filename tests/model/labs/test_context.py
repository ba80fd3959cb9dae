import json
from typing import Any

import pytest
import torch

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.context import run
from model.labs.parameters.context import Context
from model.labs.reading import run_text
from model.labs.result import Chart, Heatmap, Result
from model.labs.word_use import similarity

pytestmark = pytest.mark.weights

MODELS = ["minilm", "smollm2"]


def chart(result: Result, name: str) -> Chart:
    (found,) = [one for one in result.series if one.id == name]
    assert isinstance(found, Chart)
    return found


def heat(result: Result, name: str) -> Heatmap:
    (found,) = [one for one in result.series if one.id == name]
    assert isinstance(found, Heatmap)
    return found


@pytest.mark.parametrize("model", MODELS)
def test_two_banks(real_bench: Bench, model: str) -> None:
    result = run(Context(model=model), real_bench)
    facts: Any = result.facts
    assert facts["first"]["nearest"]["text"].startswith("Fishermen")
    assert facts["second"]["nearest"]["text"].startswith("He needed a loan")
    assert facts["others_end"] < facts["end"] < facts["start"]
    assert [check.holds for check in result.checks] == [True, True]
    json.dumps(result.as_json(), allow_nan=False)


def test_where_heads_look(real_bench: Bench) -> None:
    facts: Any = run(Context(), real_bench).facts
    assert facts["first"]["looks"][0]["word"] == "river"
    assert facts["second"]["looks"][0]["word"] == "account"
    for side in ("first", "second"):
        excess = [row["weight"] - row["at this distance elsewhere"] for row in facts[side]["looks"]]
        assert excess == sorted(excess, reverse=True)


def test_a_word_is_listed_by_the_head_that_looks_at_it_most_beyond_its_distance(real_bench: Bench) -> None:
    looks: Any = run(Context(second="They sat down on the bank."), real_bench).facts["second"]["looks"]  # type: ignore[index]
    ran = run_text(real_bench, "minilm", "They sat down on the bank.")
    sites = list(ran.trace.sites.values())
    patterns = torch.cat([site.attention(site.all_heads, range(site.queries)) for site in sites])
    bank, last = ran.labels.index("bank"), len(ran.labels) - 1
    for row in looks:
        back = bank - ran.labels.index(row["word"])
        pairs = [(i, i - back) for i in range(1, last) if 1 <= i - back < last and i != bank]
        elsewhere = torch.stack([patterns[:, i, j] for i, j in pairs]).mean(dim=0)
        most = (patterns[:, bank, bank - back] - elsewhere).max().item()
        assert row["weight"] - row["at this distance elsewhere"] == pytest.approx(most, abs=1e-6)
    assert len(looks) > 2


def test_the_vectors_are_those_of_the_stream(real_bench: Bench) -> None:
    asked = Context()
    result = run(asked, real_bench)
    vectors = []
    for text in (asked.first, asked.second):
        ran = run_text(real_bench, "minilm", text, record=("resid",))
        place = ran.labels.index("bank")
        vectors.append(torch.stack([ran.trace.resid["encoder", layer][place] for layer in range(7)]).double())
    a, b = vectors
    expected = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))
    line = chart(result, "similarity").lines[0]
    assert torch.as_tensor(line.y).tolist() == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_sentence_twice_is_1_at_every_layer(real_bench: Bench, model: str) -> None:
    text = "He sat on the bank."
    result = run(Context(model=model, first=text, second=text, layer=1), real_bench)
    same = torch.as_tensor(chart(result, "similarity").lines[0].y)
    assert (same - 1).abs().max() < 1e-5
    first, second = heat(result, "looks-first"), heat(result, "looks-second")
    assert torch.equal(first.values, second.values)
    assert first.values.sum(dim=1).allclose(torch.ones(len(first.values)), atol=1e-5)


def test_rotary_positions_leave_the_first_vector_alone(real_bench: Bench) -> None:
    assert run(Context(model="smollm2"), real_bench).facts["start"] == pytest.approx(1, abs=1e-6)


def test_a_causal_mask_keeps_what_comes_later_from_the_word(real_bench: Bench) -> None:
    first, second = "On the bank there was mud.", "On the bank there was money."
    masked = run(Context(model="smollm2", first=first, second=second), real_bench)
    assert masked.facts["end"] == pytest.approx(1, abs=1e-5)
    assert len([note for note in masked.notes if "hides what stands after" in note]) == 2
    free = run(Context(first=first, second=second), real_bench)
    assert free.facts["end"] < 0.99  # type: ignore[operator]
    assert free.notes == []


def test_other_tokens_of_the_word_are_said(real_bench: Bench) -> None:
    result = run(Context(model="smollm2", first="Bank notes lay there."), real_bench)
    assert any("not the same tokens" in note for note in result.notes)
    assert [check.name for check in result.checks] == ["last cosine, from the stream's own tokens"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"word": "shore"}, "The first text has no word “shore”"),
        ({"second": "Nothing here."}, "The second text has no word “bank”"),
        ({"senses": "A bank.\nNothing here."}, "Example 2 has no word “bank”"),
        ({"senses": "A bank.\n" * 9}, "9 example sentences"),
        ({"layer": 6}, "no layer 6"),
        ({"first": "bank " * 200}, "shorten it"),
    ],
)
def test_what_cannot_be_compared(real_bench: Bench, asked: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(Context.model_validate(asked), real_bench)


def test_examples_may_be_left_out(real_bench: Bench) -> None:
    result = run(Context(word="sat", second="He sat.", senses=" \n"), real_bench)
    facts: Any = result.facts
    assert facts["senses"] == []
    assert facts["first"]["nearest"] is None
    assert [one.id for one in result.series] == ["similarity", "looks-first", "looks-second"]


def test_a_single_word_is_enough(real_bench: Bench) -> None:
    result = run(Context(first="bank", second="bank", senses="bank"), real_bench)
    assert result.facts["end"] == pytest.approx(1, abs=1e-6)
    json.dumps(result.as_json(), allow_nan=False)


def test_what_is_said_follows_what_is_found(real_bench: Bench) -> None:
    given: Any = run(Context(), real_bench).facts
    assert (given["parting"], given["as_given"], given["position_apart"]) == ("They part.", True, True)
    text = "He sat on the bank."
    same = run(Context(first=text, second=text), real_bench)
    assert same.facts["parting"] == (
        "The two vectors are one and the same at every layer: both texts are the same."
    )
    assert chart(same, "similarity").kind == "bars"
    assert (same.facts["as_given"], same.facts["position_apart"]) == (False, False)
    masked = run(Context(model="smollm2", first="A bank of mud.", second="A bank of money."), real_bench)
    assert str(masked.facts["parting"]).endswith("nothing that reaches the word differs.")


def test_a_word_alone_has_no_others(real_bench: Bench) -> None:
    result = run(Context(first="bank", second="bank", senses=""), real_bench)
    assert result.facts["others"] is False
    assert len(chart(result, "similarity").lines) == 1


def test_of_a_word_that_stands_twice_the_first_is_taken_and_said(real_bench: Bench) -> None:
    result = run(Context(first="This bank is no bank."), real_bench)
    assert "“bank” stands 2 times in the first text: number 1 is taken." in result.notes


def test_the_check_sees_another_vector(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.labs.context.similarity", lambda a, b: similarity(a, b).flip(0))
    (check,) = [one for one in run(Context(), real_bench).checks if one.name.startswith("last")]
    assert not check.holds
