import pytest
from tokenizers import normalizers

from model.text import TextEncoder
from model.text_notices import notices_of
from tests.model.small_tokenizers import byte_level, word_piece

BERT = TextEncoder(word_piece())


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("a\x10b", "dropped U+0010 (control character), which"),
        ("it\u200d", "dropped U+200D (ZERO WIDTH JOINER), which"),
        ("it\ufffd", "dropped U+FFFD (REPLACEMENT CHARACTER), which"),
        ("karadz\u0301ic", "dropped U+0301 (COMBINING ACUTE ACCENT), which"),
        ("karadžić", "reads ž as z, ć as c."),
        ("the\n\nanimal", "sees no white space"),
        ("the  animal", "sees no white space"),
        (
            "💩 it 说 ⭢ 💩",
            "4 pieces of the text are unknown to this model's vocabulary: 💩, 说, ⭢ became [UNK].",
        ),
        (
            "我说你倒是快点啊",
            "8 pieces of the text are unknown to this model's vocabulary: 我, 说, 你, 倒, 是 and 3 more",
        ),
        ("x" * 200, f"vocabulary: {'x' * 20}… (200 characters) became [UNK]."),
    ],
)
def test_what_the_tokens_do_not_show_is_said(text, notice):
    assert any(notice in said for said in BERT.encode(text).notices)


@pytest.mark.parametrize("text", ["The Animal didn't", " it ", "המ 25", "it ! …"])
def test_case_and_single_spaces_go_without_saying(text):
    known = [said for said in BERT.encode(text).notices if "[UNK]" not in said]
    assert known == []


def test_both_texts_of_a_pair_are_looked_at():
    said = " ".join(BERT.encode("it\x10", "karadžić").notices)
    assert "U+0010" in said
    assert "ž as z" in said


def test_composing_and_decomposing_lose_nothing():
    for form in (normalizers.NFC(), normalizers.NFD()):
        assert notices_of(["é 한 e\u0301"], [[((0, 6), None)]], form.normalize_str, None) == []


def test_compatibility_forms_are_said():
    said = notices_of(["ﬁ ½"], [[((0, 3), None)]], normalizers.NFKC().normalize_str, None)
    assert said == ["This model's normaliser reads ﬁ as fi, ½ as 1⁄2."]


def test_a_rule_for_several_characters_is_noticed():
    quotes = normalizers.Replace("``", '"')
    assert notices_of(["``a"], [[((0, 3), None)]], quotes.normalize_str, None) == [
        "This model's normaliser rewrites parts of the text: the tokens show what it read."
    ]
    assert notices_of(["`a"], [[((0, 2), None)]], quotes.normalize_str, None) == []


def test_a_character_that_no_token_came_from_is_said():
    spec = byte_level()
    spec["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"String": "#"}, "behavior": "Removed", "invert": False},
            spec["pre_tokenizer"],
        ],
    }
    assert TextEncoder(spec).encode("the#the").notices == [
        "This model's tokenizer dropped U+0023 (NUMBER SIGN), which no token stands for."
    ]
