import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.text import TextEncoder
from tests.model.small_tokenizers import byte_level, sentence_piece, unigram, word_piece

BERT = TextEncoder(word_piece(), "[MASK]")
GPT = TextEncoder(byte_level())
LLAMA = TextEncoder(sentence_piece())
XLM = TextEncoder(unigram())
ENCODERS = {"WordPiece": BERT, "byte-level": GPT, "SentencePiece": LLAMA, "Unigram": XLM}


def body(encoder, text, pair=None):
    """Text and span of the tokens that are not the template's."""
    return [
        (t.text, t.span) for t in encoder.encode(text, pair).tokens if t.span is not None or not t.special
    ]


def rejoined(texts):
    """The text of tokens in a row, with the parts of a character put back together."""
    text = "".join(texts)
    text = re.sub(r"(.)·1/\d", r"\1", text, flags=re.DOTALL)
    return re.sub(r".·[2-9]/\d", "", text, flags=re.DOTALL)


def test_word_piece_tokens_show_without_marks_and_as_normalised():
    encoded = BERT.encode("The animals")
    assert [(t.text, t.span, t.special, t.words) for t in encoded.tokens] == [
        ("[CLS]", None, True, ()),
        ("the", (0, 3), False, (0,)),
        ("animal", (4, 10), False, (2,)),
        ("s", (10, 11), False, (2,)),
        ("[SEP]", None, True, ()),
    ]
    assert encoded.ids == [t.id for t in encoded.tokens]
    assert encoded.notices == []


def test_byte_level_tokens_keep_their_space_but_not_its_span():
    tokens = GPT.encode("the the").tokens
    assert [(t.text, t.span, t.words) for t in tokens] == [("the", (0, 3), (0,)), (" the", (4, 7), (2,))]


def test_sentence_piece_shows_marks_as_spaces():
    tokens = LLAMA.encode("hi hello").tokens
    assert [(t.text, t.span) for t in tokens[:3]] == [("<s>", None), (" hi", (0, 2)), (" h", (3, 4))]
    assert "".join(t.text for t in tokens[1:]) == " hi hello"


def test_a_space_that_the_tokenizer_put_before_the_text_has_no_span():
    tokens = LLAMA.encode("你").tokens
    assert [(t.text, t.span, t.words) for t in tokens[1:]] == [
        (" ", None, ()),
        ("你·1/3", (0, 1), (0,)),
        ("你·2/3", (0, 1), (0,)),
        ("你·3/3", (0, 1), (0,)),
    ]


# The rows of the cases under "Tokens" and their kin: what each piece shows and where it stood.
BERT_CASES = {
    "💩💩💩": [("[UNK]", (0, 3))],
    "我说": [("[UNK]", (0, 1)), ("[UNK]", (1, 2))],
    "ሰላም ለሁሉም": [("[UNK]", (0, 3)), ("[UNK]", (4, 8))],
    "Karadžić": [("kara", (0, 4)), ("d", (4, 5)), ("zic", (5, 8))],
    "i ⭢ j": [("i", (0, 1)), ("[UNK]", (2, 3)), ("j", (4, 5))],
    "a…c": [("a", (0, 1)), ("…", (1, 2)), ("c", (2, 3))],
    "a\x10b": [("a", (0, 1)), ("b", (2, 3))],
    "המ 25 המ": [("ה", (0, 1)), ("מ", (1, 2)), ("25", (3, 5)), ("ה", (6, 7)), ("מ", (7, 8))],
    "a\t\n  c": [("a", (0, 1)), ("c", (5, 6))],
    "a" * 10_000: [("[UNK]", (0, 10_000))],
    "{25*a}!": [
        ("[UNK]", (0, 1)),
        ("25", (1, 3)),
        ("[UNK]", (3, 4)),
        ("a", (4, 5)),
        ("[UNK]", (5, 6)),
        ("!", (6, 7)),
    ],
    "a": [("a", (0, 1))],
}


@pytest.mark.parametrize(
    ("text", "expected"), BERT_CASES.items(), ids=[ascii(text)[:30] for text in BERT_CASES]
)
def test_cases_in_word_pieces(text, expected):
    assert body(BERT, text) == expected


BYTE_CASES = {
    "💩a": [("💩·1/4", (0, 1)), ("💩·2/4", (0, 1)), ("💩·3/4", (0, 1)), ("💩·4/4", (0, 1)), ("a", (1, 2))],
    " 说": [(" ", (0, 1)), ("说·1/3", (1, 2)), ("说·2/3", (1, 2)), ("说·3/3", (1, 2))],
    "e\u0301": [("e", (0, 1)), ("\u0301·1/2", (1, 2)), ("\u0301·2/2", (1, 2))],
    "ק5": [("ק·1/2", (0, 1)), ("ק·2/2", (0, 1)), ("5", (1, 2))],
    "a\x10": [("a", (0, 1)), ("\x10", (1, 2))],
    "\t\n": [("\t", (0, 1)), ("\n", (1, 2))],
    "</": [("<", (0, 1)), ("/", (1, 2))],
}


@pytest.mark.parametrize(("text", "expected"), BYTE_CASES.items(), ids=[ascii(text) for text in BYTE_CASES])
def test_cases_in_bytes(text, expected):
    small = TextEncoder(byte_level(vocab_size=257))
    assert body(small, text) == expected


LOSSLESS = [
    "💩💩💩",
    "我说你倒是快点啊",
    "ሰላም ለሁሉም",
    "Karadžić",
    "i ⭢ j",
    "a…b \x10 c",
    "\u1112\u1161\u11ab 한국어",
    "המחיר הוא 25 שקל",
    "السعر 25 ريال",
    "e\u0301 n\u0303o\u0308",
    "👨\u200d👩\u200d👧 🇫🇷 👍🏽",
    " " * 100,
    "a\t\n\r\n b",
    "</script><img src=x onerror=alert(1)>",
    "{{7*7}}",
    "x",
    "a" * 10_000,
]


@pytest.mark.parametrize("encoder", [GPT, LLAMA], ids=["byte-level", "SentencePiece"])
@pytest.mark.parametrize("text", LOSSLESS, ids=[ascii(text)[:30] for text in LOSSLESS])
def test_cases_lose_nothing_where_every_byte_has_a_token(encoder, text):
    encoded = encoder.encode(text)
    prefix = " " if encoder is LLAMA else ""
    assert rejoined(t.text for t in encoded.tokens if t.text != "<s>") == prefix + text
    assert encoded.notices == []
    covered = {place for t in encoded.tokens if t.span for place in range(*t.span)}
    assert all(place in covered or text[place].isspace() for place in range(len(text)))


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_spans_lie_in_the_text_in_source_order(encoder, text):
    try:
        tokens = encoder.encode(text).tokens
    except InputError:
        assert encoder is BERT  # it drops white space and controls
        return
    spans = [t.span for t in tokens if t.span is not None]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    assert all(bool(t.words) == (t.span is not None and not t.special) for t in tokens)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="·"), min_size=1))
def test_byte_level_tokens_reproduce_the_text(text):
    encoded = GPT.encode(text)
    assert rejoined(t.text for t in encoded.tokens) == text
    assert GPT.decode(encoded.ids) == text


def test_nothing_is_truncated_or_padded():
    assert len(BERT.encode("it " * 50).ids) == 52
    assert len(BERT.encode("it").ids) == 3


def test_a_pair_has_two_segments_and_words_numbered_on():
    encoded = BERT.encode("the animal", "it did")
    assert [(t.text, t.segment, t.words) for t in encoded.tokens] == [
        ("[CLS]", 0, ()),
        ("the", 0, (0,)),
        ("animal", 0, (2,)),
        ("[SEP]", 0, ()),
        ("it", 1, (3,)),
        ("did", 1, (5,)),
        ("[SEP]", 1, ()),
    ]
    assert encoded.segments == [0, 0, 0, 0, 1, 1, 1]
    assert encoded.tokens[4].span == (0, 2)


def test_a_pair_is_refused_where_the_template_does_not_separate_it():
    with pytest.raises(InputError, match="one text, not a pair"):
        GPT.encode("the", "animal")


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_an_empty_text_is_refused(encoder):
    with pytest.raises(InputError, match="The text is empty: type or paste something"):
        encoder.encode("")


def test_an_empty_second_text_is_named():
    with pytest.raises(InputError, match="The second text is empty"):
        BERT.encode("it", "")


@pytest.mark.parametrize("text", [" " * 100, "\t\n", "\x10", "\u0301", "\u200d"])
def test_a_text_of_which_nothing_is_left_is_refused(text):
    with pytest.raises(InputError, match="leaves nothing of the text"):
        BERT.encode(text)


@pytest.mark.parametrize("text", ["a\ud83d", "a\udca9b", "a\udfff\ud800"])
@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_a_lone_surrogate_is_refused_with_its_position(encoder, text):
    with pytest.raises(InputError, match="position 1, counted from 0") as refusal:
        encoder.encode(text)
    assert refusal.value.extra == {"position": 1}
    refusal.value.detail.encode()  # can be sent


def test_special_tokens_that_the_user_typed_are_special_and_said():
    encoded = BERT.encode("it [SEP] the [MASK]")
    typed = [t for t in encoded.tokens if t.special and t.span]
    assert [(t.text, t.span, t.words, t.segment) for t in typed] == [
        ("[SEP]", (3, 8), (), 0),
        ("[MASK]", (13, 19), (), 0),
    ]
    assert typed[1].id == BERT.mask_id
    assert encoded.notices == ["Read as this model's own special token, not as letters: [SEP], [MASK]."]


def test_an_unknown_token_is_no_special_one():
    encoded = BERT.encode("it 💩💩💩")
    unknown = encoded.tokens[2]
    assert (unknown.text, unknown.span, unknown.special, unknown.words) == ("[UNK]", (3, 6), False, (2, 3, 4))
    assert encoded.notices == [
        "1 piece of the text is unknown to this model's vocabulary: 💩💩💩 became [UNK]."
    ]
    assert not BERT.describe([unknown.id])[0].special


def test_described_ids_have_text_but_no_source():
    ids = GPT.encode("the 💩").ids
    assert [(t.span, t.words, t.segment) for t in GPT.describe(ids)] == [(None, (), 0)] * len(ids)
    assert rejoined(t.text for t in GPT.describe(ids)) == "the 💩"
    assert GPT.describe(ids[:-1])[-1].text.startswith("‹")
    assert [(t.text, t.special) for t in BERT.describe([2, 5, 7])] == [
        ("[CLS]", True),
        ("the", False),
        ("s", False),
    ]


@pytest.mark.parametrize("wrong", [-1, BERT.vocab_size, 2**40])
@pytest.mark.parametrize("ask", [BERT.describe, BERT.decode])
def test_ids_out_of_the_vocabulary_are_named(wrong, ask):
    with pytest.raises(
        InputError, match=f"Id {wrong} is not in the vocabulary .* 0 to {BERT.vocab_size - 1}"
    ):
        ask([5, wrong])


def test_labels():
    assert BERT.label(7) == "s"
    assert LLAMA.label(3 + 0xF0) == "‹F0›"
    assert BERT.label(BERT.vocab_size) == f"‹id {BERT.vocab_size}›"


def test_decoding_names_special_tokens():
    assert BERT.decode([2, 5, 6, 7, 3]) == "[CLS] the animals [SEP]"


def test_the_mask_token():
    assert BERT.label(BERT.mask_id) == "[MASK]"
    assert GPT.mask_id is None
    assert BERT.vocab_size == len(word_piece()["model"]["vocab"])


def test_an_unknown_token_that_was_typed_is_not_an_unknown_piece():
    assert BERT.encode("[UNK]").notices == ["Read as this model's own special token, not as letters: [UNK]."]


def test_unigram_tokens_and_a_pair_in_roberta_s_template():
    encoded = XLM.encode("its", "x it")
    assert [(t.text, t.span, t.segment, t.special) for t in encoded.tokens] == [
        ("<s>", None, 0, True),
        (" it", (0, 2), 0, False),
        ("s", (2, 3), 0, False),
        ("</s>", None, 0, True),
        ("</s>", None, 0, True),
        (" ", None, 1, False),
        ("<unk>", (0, 1), 1, False),
        (" it", (2, 4), 1, False),
        ("</s>", None, 0, True),
    ]
    assert encoded.segments == [0] * 9
    assert encoded.notices == ["1 piece of the text is unknown to this model's vocabulary: x became <unk>."]


def test_added_tokens_show_as_they_are_written():
    spec = byte_level()
    spec["added_tokens"] += [{**spec["added_tokens"][0], "id": 400, "content": "<é>", "special": False}]
    assert TextEncoder(spec).encode("<é>").tokens[0].text == "<é>"
    spec = sentence_piece()
    spec["added_tokens"] += [{**spec["added_tokens"][0], "id": 400, "content": "<end▁of▁text>"}]
    marked = TextEncoder(spec)
    assert marked.label(marked.vocab_size - 1) == "<end▁of▁text>"
    assert XLM.label(XLM.vocab_size - 1) == "   "


def test_a_typed_mark_is_read_as_a_space_and_not_called_dropped():
    encoded = LLAMA.encode("hi▁hi")
    assert [t.text for t in encoded.tokens] == ["<s>", " hi", " hi"]
    assert encoded.notices == []
