"""The tokenizers of the built-in models, on the inputs that broke other tools."""

import pytest
from gguf import GGUFReader

from model.checkpoints.tokenizer_files import load_tokenizer
from model.checkpoints.tokenizer_gguf import gguf_tokenizer
from model.errors import InputError

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def minilm(weights):
    return load_tokenizer(weights("minilm"))


@pytest.fixture(scope="module")
def smollm2(weights):
    fields = GGUFReader(weights("smollm2")).fields
    return gguf_tokenizer(
        {key: field.contents() for key, field in fields.items() if key.startswith("tokenizer.")}
    )


MINILM = {
    "The keys": [("[CLS]", None), ("the", (0, 3)), ("keys", (4, 8)), ("[SEP]", None)],
    "💩💩💩": [("[CLS]", None), ("[UNK]", (0, 3)), ("[SEP]", None)],
    "Karadžić": [("[CLS]", None), ("kara", (0, 4)), ("d", (4, 5)), ("zic", (5, 8)), ("[SEP]", None)],
    "한": [("[CLS]", None), ("\u1112", (0, 1)), ("\u1161", (0, 1)), ("\u11ab", (0, 1)), ("[SEP]", None)],
    "b\x10c": [("[CLS]", None), ("bc", (0, 3)), ("[SEP]", None)],
    "א 25": [("[CLS]", None), ("א", (0, 1)), ("25", (2, 4)), ("[SEP]", None)],
    "a" * 10_000: [("[CLS]", None), ("[UNK]", (0, 10_000)), ("[SEP]", None)],
}


@pytest.mark.parametrize(("text", "expected"), MINILM.items(), ids=[ascii(text)[:30] for text in MINILM])
def test_minilm(minilm, text, expected):
    assert [(t.text, t.span) for t in minilm.encode(text).tokens] == expected


def test_minilm_is_not_truncated_at_128_as_its_file_says(minilm):
    assert len(minilm.encode("it " * 500).ids) == 502
    assert (minilm.vocab_size, minilm.label(minilm.mask_id)) == (30522, "[MASK]")


def test_minilm_sees_nothing_in_white_space(minilm):
    with pytest.raises(InputError, match="leaves nothing"):
        minilm.encode(" " * 100)


def test_smollm2_ids(smollm2):
    encoded = smollm2.encode("The capital of France is")
    assert encoded.ids == [504, 3575, 282, 4649, 314]
    assert [t.text for t in encoded.tokens] == ["The", " capital", " of", " France", " is"]
    assert [smollm2.label(i) for i in (260, 359, 1)] == [" the", " are", "<|im_start|>"]


SMOLLM2 = {
    "💩": [("💩·1/3", (0, 1)), ("💩·2/3", (0, 1)), ("💩·3/3", (0, 1))],
    " ለ": [(" ለ·1/3", (1, 2)), ("ለ·2/3", (1, 2)), ("ለ·3/3", (1, 2))],
    "יר": [("יר·1/2", (0, 2)), ("ר·2/2", (1, 2))],
    "Karadžić": [("K", (0, 1)), ("ar", (1, 3)), ("ad", (3, 5)), ("ž", (5, 6)), ("ić", (6, 8))],
    "cost 3.14": [
        ("cost", (0, 4)),
        (" ", (4, 5)),
        ("3", (5, 6)),
        (".", (6, 7)),
        ("1", (7, 8)),
        ("4", (8, 9)),
    ],
    " " * 100: [(" " * 64, (0, 64)), (" " * 32, (64, 96)), (" " * 4, (96, 100))],
    "<|im_end|>a": [("<|im_end|>", (0, 10)), ("a", (10, 11))],
}


@pytest.mark.parametrize(("text", "expected"), SMOLLM2.items(), ids=[ascii(text)[:30] for text in SMOLLM2])
def test_smollm2(smollm2, text, expected):
    assert [(t.text, t.span) for t in smollm2.encode(text).tokens] == expected


def test_no_label_shows_how_a_vocabulary_is_spelled(minilm, smollm2):
    for encoder, marks in ((minilm, ["##"]), (smollm2, ["Ġ", "Ċ", "âĢ"])):
        spelled = [encoder.label(i) for i in range(encoder.vocab_size)]
        assert [label for label in spelled if any(mark in label for mark in marks)] == []
        assert "" not in spelled
