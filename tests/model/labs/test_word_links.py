import pytest
import torch

from model.errors import InputError, TooLong
from model.labs.word_links import (
    Word,
    find_word,
    read_short,
    repeated_note,
    same_distance,
    word_weights,
    words_of,
)
from model.text import Encoded, Token

WORDS = [
    Word("[CLS]", (0,), True),
    Word("Atlases", (1, 2), False),
    Word("it", (3,), False),
    Word("It", (4,), False),
]


def test_weights_are_summed_over_pieces_looked_at_and_averaged_over_those_that_look() -> None:
    torch.manual_seed(0)
    weights = torch.rand(2, 5, 5).softmax(dim=2)
    found = word_weights(weights, WORDS)
    assert found.shape == (2, 4, 4)
    for head in range(2):
        for i, looking in enumerate(WORDS):
            for j, target in enumerate(WORDS):
                sums = [sum(weights[head, a, b].item() for b in target.tokens) for a in looking.tokens]
                assert found[head, i, j].item() == pytest.approx(sum(sums) / len(sums))
    assert found.sum(dim=2).allclose(torch.ones(2, 4))


def test_words_are_found_whatever_their_case_and_by_occurrence() -> None:
    assert find_word(WORDS, "atlases") == 1
    assert find_word(WORDS, " IT ", 2) == 3
    assert find_word(WORDS, "[cls]") == 0


def test_a_word_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"no word “them”: choose one of \[CLS\], Atlases, it"):
        find_word(WORDS, "them")
    with pytest.raises(InputError, match="2 times, not 3"):
        find_word(WORDS, "it", 3)
    with pytest.raises(InputError, match="word to look for is empty"):
        find_word(WORDS, "  ")
    with pytest.raises(InputError, match="no word “a”: it has no words at all"):
        find_word([Word(" ", (0,), False)], "a")


def test_accents_are_compared_however_they_are_encoded() -> None:
    one, two = "caf\u00e9", "cafe\u0301"
    for stands, wanted in ((one, two), (two, one), (one.upper(), two)):
        assert find_word([Word("the", (0,), False), Word(stands, (1,), False)], wanted) == 1
    with pytest.raises(InputError, match="no word"):
        find_word([Word(one, (0,), False)], "cafe")


def test_a_word_that_stands_several_times_is_told_with_the_one_that_is_taken() -> None:
    assert repeated_note(WORDS, 3) == ["“It” stands 2 times in the text: number 2 is taken."]
    assert repeated_note(WORDS, 1) == []


def test_tokens_that_share_a_word_are_one_and_words_that_share_a_token_too() -> None:
    spans: list[tuple[tuple[int, int] | None, tuple[int, ...]]] = [
        (None, ()), ((0, 2), (0,)), ((2, 5), (0,)), ((6, 9), (2, 3)), ((9, 10), (3,)), ((10, 11), (4,))
    ]  # fmt: skip
    tokens = [Token(0, "x", span, words, span is None, 0) for span, words in spans]
    encoded = Encoded([0] * 6, [0] * 6, tokens, [])
    found = words_of(encoded, "tooth b-cd!")
    assert [(word.label, word.tokens, word.special) for word in found] == [
        ("x", (0,), True),
        ("tooth", (1, 2), False),
        ("b-cd", (3, 4), False),
        ("!", (5,), False),
    ]


def test_the_same_distance_elsewhere() -> None:
    weights = torch.arange(16.0).view(1, 4, 4)
    words = [Word(str(place), (place,), False) for place in range(4)]
    # From 3 to 2; elsewhere 2 to 1 and 1 to 0.
    found = same_distance(weights, words, 3, 2)
    assert found is not None
    assert found.tolist() == [(weights[0, 2, 1].item() + weights[0, 1, 0].item()) / 2]
    assert same_distance(weights, words, 3, 0) is None


def test_a_text_beyond_the_limit_is_refused(real_bench) -> None:
    with pytest.raises(TooLong, match="7 tokens and this lab takes 6"):
        read_short(real_bench.model("minilm"), "minilm", "one two three four five", 6)
