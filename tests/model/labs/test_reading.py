"""Texts for labs: what the tokenizer tells is heard, and what is too long is refused."""

import pytest

from model.errors import InputError, TooLong
from model.labs.bench import Bench
from model.labs.catalogue import LABS
from model.labs.reading import noticing, read

STRANGE = "snow ☃ and 𓀀"
UNKNOWN = "2 pieces of the text are unknown to this model's vocabulary: ☃, 𓀀 became [UNK]."


@pytest.mark.parametrize(
    ("lab", "given"),
    [
        ("attention-row", {"text": STRANGE, "query": 0, "key": 0}), ("heads", {"text": STRANGE}),
        ("head-search", {"text": STRANGE, "word": "snow", "target": "and"}), ("block", {"text": STRANGE}),
        ("stream", {"text": STRANGE}), ("switches", {"text": STRANGE}),
        ("mask-swap", {"text": STRANGE + " x"}),
        ("order", {"text": STRANGE, "other": "and 𓀀 snow ☃"}), ("real-scores", {"text": STRANGE}),
        ("context", {"word": "snow", "first": STRANGE, "second": "the snow", "senses": ""}),
    ],
)  # fmt: skip
def test_every_lab_that_reads_a_text_tells_once_what_the_model_does_not_know(
    real_bench: Bench, lab: str, given: dict[str, object]
) -> None:
    run = LABS[lab].run
    notes = run(LABS[lab].parameters(model="minilm", **given), real_bench).notes
    assert sum(UNKNOWN in note for note in notes) == 1
    assert not any("unknown" in note for note in run(LABS[lab].parameters(), real_bench).notes)


def test_a_vocabulary_of_molecules_knows_few_words(real_bench: Bench) -> None:
    found = LABS["stream"].run(LABS["stream"].parameters(model="rxnmapper"), real_bench)
    assert any("became [UNK]" in note for note in found.notes)


def test_what_is_read_outside_is_not_heard(real_bench: Bench) -> None:
    loaded = real_bench.model("minilm")
    with noticing() as outer:
        with noticing() as inner:
            read(loaded, "minilm", STRANGE)
            read(loaded, "minilm", STRANGE)
        assert outer == []
    read(loaded, "minilm", STRANGE)
    assert inner == [UNKNOWN]


@pytest.mark.parametrize(
    ("model", "words", "most", "said", "limit"),
    [
        ("minilm", 600, 512, "has 602 tokens and minilm was made for 512: shorten it.", 512),
        ("minilm", 600, 128, "has 602 tokens and this lab takes 128: shorten it.", 128),
        ("smollm2", 600, 512, "this lab takes 512: shorten it.", 512),
    ],
)
def test_a_text_is_too_long_for_the_lab_or_for_the_model(
    real_bench: Bench, model: str, words: int, most: int, said: str, limit: int
) -> None:
    loaded, text = real_bench.model(model), "word " * words
    with pytest.raises(TooLong) as refused:
        read(loaded, model, text, most)
    assert said in refused.value.detail
    assert refused.value.extra["limit"] == limit
    cut = refused.value.extra["cut"]
    assert isinstance(cut, int)
    assert len(read(loaded, model, text[:cut], most).ids) == limit
    assert len(read(loaded, model, text[:cut], most + 1).ids) == limit
    with pytest.raises(TooLong):
        read(loaded, model, text[: cut + len("word ")], most)


@pytest.mark.parametrize(
    ("lab", "given", "said"),
    [
        ("order", {"model": "smollm2", "text": "a " * 300, "other": "a " * 300}, "this lab takes 256"),
        ("facts", {"prompt": "word " * 100}, "this lab takes 64"),
        ("rope-model", {"text": "word " * 700}, "this lab takes 512"),
        ("mask-swap", {"text": "word " * 200}, "this lab takes 128"),
        ("ffn-forms", {"width": 256, "expansion": 8.0, "steps": 600}, "take at most 76 steps"),
    ],
)
def test_what_would_take_longer_than_some_seconds_is_refused_with_what_to_lower(
    real_bench: Bench, lab: str, given: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        LABS[lab].run(LABS[lab].parameters(**given), real_bench)
