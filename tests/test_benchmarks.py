"""The benchmark's own arithmetic and words; what it measures is no matter for a test."""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.effort import EFFORTS
from benchmarks.pairs import Pairs, interleaved
from benchmarks.report import report
from benchmarks.results import BertViz, Forward, Lesson, Machine, Memory, Opening, Picture, Results, Start
from benchmarks.spreads import line, spread
from benchmarks.tables import size, table, time
from benchmarks.texts import WORDS, first_request, text_of
from benchmarks.verdicts import verdicts
from model import zoo
from model.wav import read_sound

ANSWERS = {"minilm": 2.0, "smollm2": 5.0, "whisper-tiny.en": 7.0, "rxnmapper": 7.5}
START = Start(0.5, ANSWERS, {"whisper-tiny.en": 2.5, "rxnmapper": 1.75})
LINEAR = [Memory("minilm", tokens, "ours", 1000 + 30_000 * tokens, 0, 0) for tokens in (128, 256, 512)]


def results(**parts: object) -> Results:
    machine = Machine("a processor", 2, 16, "Linux", "Python 3")
    return Results("2030-01-31", "default", machine, **parts)  # type: ignore[arg-type]


def picture(tokens: int = 128, **changed: object) -> Picture:
    fields = {
        "model": "minilm", "tokens": tokens, "complete": (120.0, 130.0, 140.0), "first": (80.0,),
        "forward": (30.0,), "wire": 200_000, "unpacked": 400_000, "renderer": 300_000_000,
        "renderer_later": 350_000_000,
        "choices": (40.0,), "hovers": (4.0,),
    }  # fmt: skip
    return Picture(**{**fields, **changed})  # type: ignore[arg-type]


def bertviz(tokens: int = 128, size: int = 50_000_000) -> BertViz:
    return BertViz("minilm", tokens, (20.0,), (800.0,), (15_000.0,), size, 3_000_000_000)


def lesson(*first: float, newcomer: float = 5000.0) -> Lesson:
    before = {"asked": tuple(time - 300 for time in first), "answered": tuple(time - 100 for time in first)}
    after = {"complete": tuple(time + 900 for time in first), "alone": (42.0,)}
    return Lesson(
        "scaling",
        "softmax-gradient",
        newcomer,
        first=first,
        **before,
        **after,
        wire=(1_500_000,),
        renderer=250_000_000,
    )


def reached(found: Results) -> list[bool]:
    return [verdict.reached for verdict in verdicts(found)]


def test_pairs_alternate_and_keep_the_order_within_a_pair() -> None:
    calls: list[str] = []
    pairs = interleaved(lambda: calls.append("a"), lambda: calls.append("b"), 3)
    assert "".join(calls) == "ab" + "abbaab"
    assert len(pairs.a) == len(pairs.b) == 3


def test_ratios_are_taken_pair_by_pair() -> None:
    assert Pairs((2.0, 9.0), (4.0, 3.0)).ratios == [0.5, 3.0]


def test_a_spread_is_the_median_and_the_quartiles() -> None:
    found = spread([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (found.median, found.low, found.high, found.count) == (3.0, 2.0, 4.0, 5)
    assert spread([7.0]).high == 7.0


def test_a_line_says_how_far_the_points_lie_off() -> None:
    exact = line([1, 2, 4], [12, 22, 42])
    assert (exact.slope, exact.intercept, exact.residual) == pytest.approx((10, 2, 0))
    assert line([100, 200, 400], [1e4, 4e4, 16e4]).residual > 0.1


def test_tables_are_padded_and_numbers_stand_to_the_right() -> None:
    drawn = table(("model", "N"), [("a", "16"), ("longer", "2048")])
    assert drawn.splitlines() == [
        "| model  |    N |",
        "| ------ | ---: |",
        "| a      |   16 |",
        "| longer | 2048 |",
    ]


@pytest.mark.parametrize(
    ("milliseconds", "words"), [(3.456, "3.46 ms"), (45.67, "45.7 ms"), (15_800, "15.8 s")]
)
def test_times_have_three_digits(milliseconds: float, words: str) -> None:
    assert time(milliseconds) == words


@pytest.mark.parametrize(("count", "words"), [(900, "900 B"), (87_800, "87.8 KB"), (3.4e9, "3.40 GB")])
def test_sizes_are_decimal(count: float, words: str) -> None:
    assert size(count) == words


def test_every_text_differs() -> None:
    assert len({text_of("minilm", 64, seed) for seed in range(20)}) == 20


@pytest.mark.weights
@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_a_text_has_as_many_tokens_as_asked(model: str, weights: Callable[[str], Path]) -> None:
    from model.checkpoints.reader import open_checkpoint

    _, encoder = open_checkpoint(weights(model))
    assert encoder is not None
    for seed in range(len(WORDS)):
        assert len(encoder.encode(text_of(model, 64, seed)).ids) == 64


def test_the_ratio_of_forwards_is_that_of_pairs() -> None:
    # The medians alone would say 1.0.
    slow_moments = Forward("minilm", 16, ours=(11.0, 30.0, 33.0), fused=(10.0, 10.0, 30.0), eager=20.0)
    assert reached(results(forward=[slow_moments])) == [False]
    assert reached(results(forward=[Forward("minilm", 16, (10.4, 20.8), (10.0, 20.0), 20.0)])) == [True]


def test_memory_must_be_small_and_linear() -> None:
    assert reached(results(memory=LINEAR)) == [True]
    large = [Memory("minilm", row.tokens, "ours", row.peak * 2, 0, 0) for row in LINEAR]
    assert reached(results(memory=large)) == [False]
    bent = [Memory("minilm", row.tokens, "ours", 50 * row.tokens**2, 0, 0) for row in LINEAR]
    assert reached(results(memory=bent)) == [False]


def test_a_picture_may_take_longer_where_the_forward_does() -> None:
    late = results(pictures=[picture(complete=(400.0,), choices=(1.0,))])
    assert reached(late)[0] is False
    assert reached(results(pictures=[picture(complete=(400.0,), forward=(160.0,))]))[0] is True


def test_bytes_are_held_against_bertviz() -> None:
    def found(bytes_of_theirs: int) -> list[bool]:
        both = results(pictures=[picture()], bertviz=[bertviz(size=bytes_of_theirs)])
        return [verdict.reached for verdict in verdicts(both) if "BertViz" in verdict.what]

    assert (found(40_000_000), found(39_000_000)) == ([True], [False])


def test_a_view_that_was_never_painted_is_not_compared() -> None:
    stuck = BertViz("minilm", 128, (20.0,), (800.0,), (), 50_000_000, 0, "not painted within 180 s")
    assert results(bertviz=[stuck]).bertviz_at("minilm", 128) is None


def test_the_report_shows_what_was_measured_and_what_was_not() -> None:
    whole = results(
        forward=[Forward("minilm", 16, (10.0, 11.0), (10.0, 10.0), 20.0)],
        memory=LINEAR,
        pictures=[picture(64), picture(128)],
        bertviz=[bertviz()],
        openings=[Opening(900.0, 1500.0, 300.0, 800.0, 1_600_000, 30_000)],
        starts=[START],
        missing={"forward": "torch is ill"},
        busy=[0.1],
    )
    drawn = report(whole)
    for words in ("a processor", "1.05 (1.02–1.08)", "800 ms + 15.0 s", "122 ×", "50.0 MB", "torch is ill"):
        assert words in drawn
    assert json.loads(json.dumps(asdict(whole)))["starts"][0]["answers"]["smollm2"] == 5.0


def test_memory_without_a_limit_must_still_be_linear() -> None:
    def found(growth: Callable[[int], int], lengths: tuple[int, ...] = (64, 192, 320, 448)) -> list[bool]:
        rows = [Memory("whisper-tiny.en", tokens, "ours", growth(tokens), 0, 0) for tokens in lengths]
        return reached(results(memory=rows))

    assert found(lambda tokens: 70_000_000 + 30_000 * tokens) == [True]
    assert found(lambda tokens: 70_000_000 + 1000 * tokens**2) == [False]
    assert found(lambda tokens: 30_000 * tokens, lengths=(64, 448)) == []


def test_a_start_is_judged_by_the_model_that_was_loaded_alone() -> None:
    assert reached(results(starts=[START])) == [True] * 5
    slow = Start(0.5, ANSWERS, {"whisper-tiny.en": 6.5, "rxnmapper": 1.75})
    assert reached(results(starts=[slow])).count(False) == 1
    drawn = report(results(starts=[START]))
    assert re.search(r"rxnmapper.s first answer +\| +7\.50 \(7\.50–7\.50\) \| +1\.75 \(1\.75–1\.75\)", drawn)


def test_a_learn_page_is_judged_by_the_median_of_its_visits() -> None:
    assert reached(results(lessons=[lesson(700.0, 1000.0, 4000.0)])) == [True]
    assert reached(results(lessons=[lesson(700.0, 1001.0, 1002.0, newcomer=800.0)])) == [False]
    assert reached(results(lessons=[lesson(700.0), lesson(1100.0)])) == [True, False]


def test_the_time_of_a_learn_page_is_told_in_its_parts() -> None:
    drawn = report(results(lessons=[lesson(800.0, 900.0, 1000.0)]))
    row = next(line for line in drawn.splitlines() if "softmax-gradient" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:8] == ["900 (850–950)", "600", "200", "100", "42", "5000"]
    assert cells[8:] == ["1800 (1750–1850)", "1.50 MB", "250 MB"]


def test_a_model_that_hears_is_first_given_sound() -> None:
    sound = base64.b64decode(str(first_request("whisper-tiny.en")["audio"]))
    assert read_sound(sound).samples.abs().max() == pytest.approx(8000 / 2**15, rel=1e-3)
    for model in ("minilm", "smollm2", "rxnmapper"):
        assert first_request(model)["text"]


@pytest.mark.weights
@pytest.mark.parametrize("model", list(zoo.entries()))
def test_both_sides_compute_the_same(model: str, weights: Callable[[str], Path]) -> None:
    from benchmarks.workers.models import Both, both, sound
    from model.loading import load_model

    weights(model)
    pair = both(model)
    pair.assert_equal()
    other = load_model(weights(model))
    last = list(other.transformer.stack.blocks.parameters())[-1]
    last += 0.1
    with pytest.raises(AssertionError, match="differ by"):
        Both(other, pair.peer, sound(other.config)).assert_equal()


def test_every_effort_measures_all_parts() -> None:
    models = set(zoo.entries())
    for effort in EFFORTS.values():
        assert {case.model for case in effort.forward} == models
        assert {model for model, _ in effort.memory} == models
        assert {(case.model, case.tokens) for case in effort.bertviz} >= {("minilm", 64), ("minilm", 128)}
        assert min(effort.openings, effort.lessons, effort.starts) >= 1
