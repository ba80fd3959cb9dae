import json
from typing import Any

import pytest
import torch

from model.errors import InputError
from model.labs import one_pattern
from model.labs.bench import Bench
from model.labs.one_pattern import run
from model.labs.parameters.heads import OnePattern
from model.labs.reading import run_text
from model.labs.result import Chart

pytestmark = pytest.mark.weights


def test_surprise_rises_where_heads_share_a_pattern(real_bench: Bench) -> None:
    result = run(OnePattern(), real_bench)
    surprise: Any = result.facts["surprise"]
    (bars,) = result.series
    assert isinstance(bars, Chart)
    assert list(bars.lines[0].x) == ["1, one for all", "4, shared by groups", "9, one for each head"]
    one, some, own = bars.lines[0].y
    assert one > own + 2
    assert some > own + 2
    assert (surprise["own"], surprise["change"]) == (pytest.approx(own, abs=1e-3), "more")
    assert [check.holds for check in result.checks] == [True, True]
    json.dumps(result.as_json(), allow_nan=False)


def test_a_sentence_vector_moves(real_bench: Bench) -> None:
    result = run(OnePattern(model="minilm"), real_bench)
    assert result.facts["surprise"] is None
    assert result.facts["cosine"]["one"] < 0.9  # type: ignore[index]
    assert [check.holds for check in result.checks] == [True, True]


def test_a_pattern_given_is_the_mean_of_its_group(real_bench: Bench) -> None:
    site = run_text(real_bench, "minilm", "two words").trace.sites["encoder.self.2"]
    patterns = site.attention(site.all_heads, range(site.queries))  # [H, T, T]
    first, second = one_pattern.given(site, 2)
    assert first["heads"] == [0, 1, 2, 3, 4, 5]
    assert second["heads"] == [6, 7, 8, 9, 10, 11]
    torch.testing.assert_close(torch.tensor(second["weights"]), patterns[6:].mean(dim=0))


def test_one_head_to_look_at_changes_nothing(real_bench: Bench) -> None:
    surprise: Any = run(OnePattern(text="x y"), real_bench).facts["surprise"]
    assert (surprise["more"], surprise["change"]) == (pytest.approx(0, abs=1e-3), "the same")


def test_checks_see_other_heads_patterns(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    right = one_pattern.given

    def swapped(site: Any, count: int) -> Any:
        steps = right(site, count)
        return [{**step, "weights": steps[-1 - place]["weights"]} for place, step in enumerate(steps)]

    monkeypatch.setattr(one_pattern, "given", swapped)
    assert [check.holds for check in run(OnePattern(model="minilm"), real_bench).checks] == [False, True]

    def sharp(site: Any, count: int) -> Any:
        eye = torch.eye(site.queries).tolist()
        return [{**step, "weights": eye} for step in right(site, count)]

    monkeypatch.setattr(one_pattern, "given", sharp)
    assert [check.holds for check in run(OnePattern(model="minilm"), real_bench).checks] == [False, False]


def test_texts_that_cannot_be_asked(real_bench: Bench) -> None:
    with pytest.raises(InputError, match="has none to predict"):
        run(OnePattern(text="x"), real_bench)
    with pytest.raises(InputError, match="shorten it"):
        run(OnePattern(text="word " * 100), real_bench)
