from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.head_search import _between, run
from model.labs.parameters.heads import ANIMAL, HeadSearch
from model.labs.result import Chart, Heatmap

pytestmark = pytest.mark.weights


def test_it_finds_the_animal(real_bench: Bench) -> None:
    result = run(HeadSearch(), real_bench)
    best: dict[str, Any] = dict(result.facts["best"])  # type: ignore[call-overload]
    assert best["name"] == "L3H1"
    assert best["weight"] == pytest.approx(0.677, abs=1e-3)
    assert best["elsewhere"] < 0.1
    assert best["flat"] == pytest.approx(1 / 16)
    assert all(check.holds for check in result.checks)
    links, row = result.series
    assert isinstance(links, Heatmap)
    assert isinstance(row, Chart)
    assert links.values.shape == (6, 12)
    assert links.values[3, 1].item() == pytest.approx(best["weight"])
    assert links.values.max() == links.values[3, 1]


def test_the_order_of_words_is_that_of_query_and_key(real_bench: Bench) -> None:
    loaded = real_bench.model("minilm")
    assert loaded.encoder is not None
    result = run(HeadSearch(word="animal", target="it"), real_bench)
    from model.labs.reading import run_text

    ran = run_text(real_bench, "minilm", ANIMAL)
    animal, it = ran.labels.index("animal"), ran.labels.index("it")
    links = result.series[0]
    assert isinstance(links, Heatmap)
    for layer in range(6):
        site = ran.trace.sites[f"encoder.self.{layer}"]
        weights = site.attention(site.all_heads, range(site.queries))[:, animal, it]
        assert links.values[layer].tolist() == pytest.approx(weights.tolist(), abs=1e-6)


def test_pieces_are_summed_and_said(real_bench: Bench) -> None:
    result = run(HeadSearch(word="it", target="didn't"), real_bench)
    assert any("didn't” 3" in note for note in result.notes)


def test_occurrences_and_special_tokens(real_bench: Bench) -> None:
    first = run(HeadSearch(target="the", target_occurrence=1), real_bench)
    second = run(HeadSearch(target="the", target_occurrence=2), real_bench)
    assert first.facts["best"] != second.facts["best"]
    assert run(HeadSearch(target="[SEP]"), real_bench).facts["target"] == "[SEP]"


def test_a_causal_mask_hides_what_comes_later(real_bench: Bench) -> None:
    result = run(HeadSearch(model="smollm2", word="animal", target="it"), real_bench)
    assert any("“animal” cannot see “it”" in note for note in result.notes)
    assert (result.facts["best"], result.facts["table"]) == (None, [])
    assert [one.id for one in result.series] == ["links"]
    assert all(check.holds for check in result.checks)
    found = run(HeadSearch(model="smollm2"), real_bench)
    assert found.notes == []
    assert found.facts["best"]["name"] == "L13H8"  # type: ignore[index]


def test_a_long_row_says_what_it_leaves_out(real_bench: Bench) -> None:
    text = "it saw the animal. " + "and then some more " * 30
    result = run(HeadSearch(text=text), real_bench)
    row = result.series[1]
    assert isinstance(row, Chart)
    assert len(row.lines[0].x) in (63, 64)
    assert any("not drawn" in note for note in result.notes)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"word": "them"}, "no word “them”"),
        ({"target_occurrence": 2}, "once, not 2"),
        ({"target": "it"}, "cannot be linked to itself"),
        ({"text": "it animal " * 300}, "shorten it"),
    ],
)
def test_what_cannot_be_searched(real_bench: Bench, asked: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(HeadSearch.model_validate(asked), real_bench)


@pytest.mark.parametrize("wrong", [lambda weights: weights.mT, lambda weights: weights.flip(-3)])
def test_the_check_sees_turned_pairs_and_other_heads(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Tensor], Tensor]
) -> None:
    monkeypatch.setattr("model.labs.head_search._between", lambda site, words: wrong(_between(site, words)))
    assert not run(HeadSearch(), real_bench).checks[0].holds


def test_a_word_that_stands_twice_is_told(real_bench: Bench) -> None:
    result = run(HeadSearch(target="the", target_occurrence=2), real_bench)
    assert "“the” stands 2 times in the text: number 2 is taken." in result.notes
