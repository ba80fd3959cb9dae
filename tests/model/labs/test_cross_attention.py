"""Cross-attention in small models that read or hear, and in Whisper itself, held against plain torch."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.errors import InputError, TooLong, UnknownRecording
from model.labs import cross_attention
from model.labs.bench import Bench
from model.labs.looking_across import Seen, follow
from model.labs.parameters.cross_attention import CrossAttention
from model.loading import load_model
from model.recordings import recordings
from tests import tiny, tiny_families
from tests.model.small_tokenizers import word_piece

SOURCE, TARGET = "the animal did it", "it did the animals a"


def with_tokenizer(folder: Path) -> Path:
    (folder / "tokenizer.json").write_text(json.dumps(word_piece()), "utf-8")
    return folder


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    root = tmp_path_factory.mktemp("paired")
    places = {
        "bart": with_tokenizer(tiny_families.write(root / "bart", tiny_families.BART)),
        "whisper": with_tokenizer(tiny_families.write(root / "whisper", tiny_families.WHISPER)),
        "bert": tiny.write(root / "bert", tiny.BERT, tiny.bert_tensors()),
    }
    models = {name: load_model(place) for name, place in places.items()}
    return Bench(models.__getitem__)


def run(bench, **given):
    values = {"model": "bart", "text": SOURCE, "target": TARGET, "layer": 0, "head": 1, **given}
    result = cross_attention.run(CrossAttention(**values), bench)
    return (
        result,
        {one.id: one for one in result.series},
        {check.name: check for check in result.checks},
    )


def test_the_matrix_is_the_trace_s_own_row_by_row(bench):
    result, series, checks = run(bench)
    weights = series["listening"].values
    assert weights.shape == (result.facts["queries"], result.facts["keys"])
    torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)), atol=1e-5, rtol=0)
    assert checks["sum of a drawn row, farthest from 1"].holds
    centre = (weights.double() * torch.arange(weights.shape[1])).sum(1)
    first = len(weights) - len(series["places"].lines[0].y)
    torch.testing.assert_close(series["places"].lines[0].y, centre[first:], atol=1e-6, rtol=1e-6)


def test_surprise_is_cross_entropy_and_leaves_the_source_out(bench):
    result, series, _ = run(bench)
    with_it, without = (line.y for line in series["worth"].lines)
    assert result.facts["surprise"] == pytest.approx(with_it.mean().item())
    _, other, _ = run(bench, text="a cab the animals")
    changed, same = (line.y for line in other["worth"].lines)
    assert not torch.allclose(with_it, changed)
    assert torch.equal(without, same)


def test_where_all_centres_are_alike_nothing_follows():
    assert follow(torch.full((2, 5), 3.0)).tolist() == [0, 0]
    # Ranks 0.5, 0.5, 2: Pearson of those with 0, 1, 2 is √3 / 2
    assert follow(torch.tensor([1.0, 1.0, 4.0])).item() == pytest.approx(3**0.5 / 2)


def test_one_token_is_spoken_of_as_one(bench):
    result, _, _ = run(bench, target="it")
    assert result.facts["looks"].endswith("the only one")
    assert not result.facts["has_order"]
    assert any("from 1 token: write" in note for note in result.notes)
    assert "”, “" not in result.facts["looks"]
    assert " s" not in result.facts["looks"].split("looks at ")[1].removesuffix(", the only one")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sum of a drawn row, farthest from 1", {"weights": lambda seen: seen.weights * 2}),
        (
            "columns between a centre and that of the drawn row, at most",
            {"weights": lambda s: s.weights.flip(-1)},
        ),
        ("mean surprise, by a plain run and cross-entropy", {"surprise": lambda seen: seen.surprise * 1.1}),
    ],
)
def test_what_is_drawn_wrong_does_not_hold(bench, monkeypatch, name, wrong):
    own = cross_attention.look
    (field,) = wrong

    def look(*given):
        seen = own(*given)
        changed = replace(seen, **{field: wrong[field](seen)})
        if field == "weights" and "centre" in name:
            monkeypatch.setattr(Seen, "centres", seen.centres)
        return changed

    monkeypatch.setattr(cross_attention, "look", look)
    _, _, checks = run(bench, target="it did the animals a")
    assert [one for one, check in checks.items() if not check.holds] == [name]


def test_followers_are_ranked_by_the_order_of_their_centres():
    order = torch.tensor([[0.1, 0.5, 2.0, 7.0], [7.0, 2.0, 0.5, 0.1], [0.0, 2.0, 1.0, 3.0]])
    # Spearman: 1 − 6 Σd² / n(n² − 1); one swap of neighbours has Σd² = 2
    torch.testing.assert_close(follow(order), torch.tensor([1.0, -1.0, 1 - 6 * 2 / 60], dtype=torch.float64))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"layer": 9}, "no layer 9: choose one from 0 to"),
        ({"head": 9}, "no head 9: choose one from 0 to"),
        ({"model": "bert"}, "has no encoder beside a decoder"),
        ({"recording": "amiable"}, "leave the recording empty"),
        ({"text": ""}, "give a text"),
        ({"model": "whisper"}, "leave the text empty"),
    ],
)
def test_what_does_not_go_together_is_said(bench, given, words):
    with pytest.raises(InputError, match=words):
        run(bench, **given)


def test_too_much_and_what_there_is_not_are_said(bench):
    with pytest.raises(UnknownRecording, match="no recording song"):
        run(bench, model="whisper", text="", recording="song")
    with pytest.raises(TooLong, match="this model hears"):
        run(bench, model="whisper", text="")
    with pytest.raises(TooLong, match=r"target has .* tokens"):
        run(bench, target="the " * 400)


@pytest.mark.weights
def test_whisper_writes_what_the_reader_says_and_follows_it_through_the_sound(real_bench):
    result, series, checks = run(real_bench, model="whisper-tiny.en", text="", target="", layer=2, head=4)
    said = next(iter(recordings().values())).said
    assert result.facts["written"] == said
    words = checks["words written as a listener hears them"]
    assert (words.expected, words.measured) == (len(said.split()), len(said.split()))
    places = series["places"].lines[0].y
    assert bool((places.diff() > 0).all())
    assert 0 < places[0] < 0.7
    assert 2.5 < places[-1] < 3.3
    assert all(check.holds for check in result.checks)
    assert result.facts["surprise_without"] > 5
    assert result.facts["surprise"] < 0.5
    matrix = series["listening"]
    assert len(matrix.columns) == matrix.values.shape[1] <= cross_attention.COLUMNS


@pytest.mark.weights
def test_a_wrong_target_surprises_whisper_where_it_is_wrong(real_bench):
    _, series, checks = run(
        real_bench,
        model="whisper-tiny.en",
        text="",
        target=" He might even have been eaten.",
        layer=2,
        head=4,
    )
    surprise = dict(zip(series["worth"].lines[0].x, series["worth"].lines[0].y.tolist(), strict=True))
    assert surprise["7 eaten"] > 5 > surprise["3 might"]
    assert "words written as a listener hears them" not in checks
