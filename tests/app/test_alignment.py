import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.services.alignment import align
from model.errors import InputError
from model.text import Encoded, Token


def encoded(*tokens, start=0):
    """Tokens of (text, span, words)."""
    made = [
        Token(start + i, text, span, words, special=False, segment=0)
        for i, (text, span, words) in enumerate(tokens)
    ]
    return Encoded([token.id for token in made], [0] * len(made), made, [])


def units(alignment):
    return [(unit["label"], unit["a"], unit["b"]) for unit in alignment.as_json()]


def test_words_that_a_token_of_either_side_spans_are_one_unit():
    a = encoded(("new", (0, 3), (0,)), (" york", (3, 8), (1, 2)), (" is", (8, 11), (3, 4)))
    b = encoded(("new york", (0, 8), (0, 1, 2)), ("is", (9, 11), (4,)), start=9)
    assert units(align(a, b, "word", same_text=True)) == [("new york", [0, 1], [0]), ("is", [2], [1])]


def test_tokens_that_share_a_character_are_one_unit():
    a = encoded(("�", (0, 1), (0,)), ("�", (0, 1), (0,)), ("x", (1, 2), (0,)))
    b = encoded(("💩", (0, 1), (0,)), ("x", (1, 2), (0,)), start=9)
    alignment = align(a, b, "token", same_text=True)
    assert [unit[1:] for unit in units(alignment)] == [([0, 1], [0]), ([2], [1])]


def test_the_same_span_of_another_text_is_no_partner():
    a, b = encoded(("cat", (0, 3), (0,))), encoded(("dog", (0, 3), (0,)), start=9)
    assert units(align(a, b, "token", same_text=True)) == [("cat", [0], [0])]
    for by in ("token", "word"):
        with pytest.raises(InputError, match=f"no {by} in common"):
            align(a, b, by, same_text=False)


def test_the_same_segment_is_needed():
    a = encoded(("a", (0, 1), (0,)))
    b = Encoded([9], [1], [Token(9, "a", (0, 1), (0,), special=False, segment=1)], [])
    with pytest.raises(InputError):
        align(a, b, "token", same_text=True)


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_two_texts_share_no_token_twice_and_only_equal_ones_in_order(one, other):
    a = encoded(*((text, (i, i + 1), (i,)) for i, text in enumerate(one)))
    b = encoded(*((text, (i, i + 1), (i,)) for i, text in enumerate(other)), start=9)
    try:
        found = units(align(a, b, "token", same_text=False))
    except InputError:
        assert not one or not other or (one[0] != other[0] and one[-1] != other[-1])
        return
    assert [(one[i], other[j]) for _, [i], [j] in found] == [(label, label) for label, _, _ in found]
    for side in (1, 2):
        places = [unit[side][0] for unit in found]
        assert places == sorted(set(places))


@given(st.integers(1, 6), st.data())
def test_rows_still_sum_to_one(count, data):
    words = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    a = encoded(*((str(i), (i, i + 1), (word,)) for i, word in enumerate(words)))
    b = encoded(*((str(word), (word, word + 1), (word,)) for word in range(2)), start=9)
    weights = torch.softmax(
        torch.randn(2, count, count, generator=torch.Generator().manual_seed(count)), dim=-1
    )
    try:
        alignment = align(a, b, "word", same_text=True)
    except InputError:
        assert not {0, 1} & set(words)
        return
    between = alignment.of_a(weights)
    assert between.shape == (2, alignment.units, alignment.units + 1)
    np.testing.assert_allclose(between.sum(dim=-1), 1, atol=1e-5)
    left = set(range(count)) - {i for unit in alignment.units_a for i in unit}
    assert alignment.left_a == sorted(left)
