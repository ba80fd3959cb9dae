from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.words import WHITE_SPACE, Words, word_spans

# Worked out by hand from the rules WB1 to WB999 of UAX #29, named on the right.
SEGMENTS = [
    (["didn't"], "WB6, WB7: an apostrophe within letters"),
    (["it’s"], "WB6, WB7: a typographic apostrophe"),
    (["3.14"], "WB11, WB12: a point within digits"),
    (["3", "."], "WB12 needs a digit after the point"),
    (["a1b2"], "WB9, WB10: letters and digits"),
    (["snake_case"], "WB13a, WB13b: connecting punctuation"),
    (["well", "-", "known"], "a hyphen is a word of its own"),
    (["a", "   ", "b"], "WB3d: spaces stay together"),
    (["a", "\n", "\n", "\t", "b"], "WB3a, WB3b: line breaks stand apart"),
    (["a", "\r\n", "b"], "WB3: CR LF is one"),
    (["המחיר", " ", "הוא", " ", "25", " ", "שקל"], "Hebrew with Latin digits, in source order"),
    (['צה"ל'], "WB7b, WB7c: a double quote within Hebrew letters"),
    (["السعر", " ", "25.5", " ", "ريال"], "Arabic with Latin digits"),
    (["ሰላም", " ", "ለሁሉም"], "Amharic"),
    (["我", "说", "你"], "ideographs stand alone"),
    (["カタカナ", "で", "す"], "WB13: Katakana stays together, Hiragana does not"),
    (["한국어"], "Hangul syllables are letters"),
    (["\u1112\u1161\u11ab"], "Hangul jamo are letters"),
    (["e\u0301a"], "WB4: a combining mark belongs to its letter"),
    (["👨\u200d👩\u200d👧", " ", "👍🏽"], "WB3c, WB4: joined emoji and skin tone"),
    (["🇫🇷", "🇩🇪"], "WB15, WB16: flags are pairs"),
    (["💩", "💩", "💩"], "emoji side by side are words of their own"),
    (["Karadžić"], "letters beyond ASCII"),
    (["i", " ", "⭢", " ", "j"], "an arrow"),
    (["…"], "an ellipsis"),
    (["b", "\x10", "c"], "a control character stands alone"),
    (["<", "/", "script", ">"], "markup is only text"),
    (["{", "{", "7", "*", "7", "}", "}"], "a template is only text"),
]


@pytest.mark.parametrize(("segments", "rule"), SEGMENTS, ids=[rule for _, rule in SEGMENTS])
def test_segments(segments, rule):
    text = "".join(segments)
    assert [text[start:end] for start, end in word_spans(text)] == segments


def test_no_text_has_no_words():
    assert word_spans("") == []


@given(st.text())
def test_segments_cover_the_text_without_gaps(text):
    spans = word_spans(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(left[1] == right[0] for left, right in pairwise(spans))
    assert all(start < end for start, end in spans)


def test_a_span_overlaps_the_words_it_touches_but_not_the_white_space_between():
    words = Words("it was too")
    assert words.overlapping((0, 2)) == (0,)
    assert words.overlapping((1, 4)) == (0, 2)
    assert words.overlapping((0, 10)) == (0, 2, 4)


def test_white_space_belongs_to_a_span_of_nothing_else():
    words = Words("a  \n b")
    assert words.overlapping((1, 3)) == (1,)
    assert words.overlapping((2, 5)) == (1, 2, 3)


def test_words_of_a_second_text_are_numbered_on():
    first = Words("a b")
    assert Words("c", first=len(first)).overlapping((0, 1)) == (3,)


def test_white_space_is_the_unicode_property_and_not_python_s():
    assert all(char.isspace() for char in WHITE_SPACE)
    assert len(set(WHITE_SPACE)) == len(WHITE_SPACE) == 25
    assert "\x1c" not in WHITE_SPACE
    assert "\x1c".isspace()
