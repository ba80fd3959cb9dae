import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from model.token_text import spelling_of, token_texts
from tests.model.small_tokenizers import byte_level, sentence_piece, word_piece


@pytest.mark.parametrize(
    ("chunks", "texts"),
    [
        ([b"the", b" animal"], ["the", " animal"]),
        ([b"\xf0\x9f", b"\x92", b"\xa9"], ["💩·1/3", "💩·2/3", "💩·3/3"]),
        ([b" \xe1", b"\x88", b"\x88!"], [" ለ·1/3", "ለ·2/3", "ለ·3/3!"]),
        (["יר".encode()[:3], "יר".encode()[3:]], ["יר·1/2", "ר·2/2"]),
        ([b"\xe6\x88\x91\xe8", b"\xaf", b"\xb4"], ["我说·1/3", "说·2/3", "说·3/3"]),
        ([b"\xf0\x9f"], ["‹F0 9F›"]),
        ([b"a\xf0\x9f", b"b"], ["a‹F0 9F›", "b"]),
        ([b"\xff", b"\x92\xa9"], ["‹FF›", "‹92 A9›"]),
        ([b"", b"x"], ["", "x"]),
        ([], []),
    ],
)
def test_bytes_show_as_the_text_they_stand_for(chunks, texts):
    assert token_texts(chunks) == texts


@given(st.text(), st.integers(1, 5))
def test_each_way_of_cutting_bytes_shows_every_character(text, size):
    stream = text.encode("utf-8", "ignore")
    text = stream.decode()
    shown = token_texts([stream[at : at + size] for at in range(0, len(stream), size)])
    assert len(shown) == -(-len(stream) // size)
    assert not any("‹" in part for part in shown) or "‹" in text
    whole = [part for part in shown if "·" not in part]
    assert all(part in text for part in whole)


def test_byte_level_pieces():
    spell = spelling_of(byte_level())
    assert spell("Ġare") == b" are"
    assert spell("ðŁ") == b"\xf0\x9f"
    assert spell("Ċ") == b"\n"
    assert spell("snow ☃") == "snow ☃".encode()


def test_the_byte_alphabet_is_that_of_the_tokenizers_library():
    spell = spelling_of(byte_level())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    assert sorted(spell(char) for char in alphabet) == [bytes([byte]) for byte in range(256)]
    encode = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
    text = "".join(map(chr, range(0x20, 0x250))) + "💩"
    assert b"".join(spell(piece) for piece, _ in encode(text)) == text.encode()


def test_word_piece_pieces():
    spell = spelling_of(word_piece())
    assert spell("##zic") == b"zic"
    assert spell("the") == b"the"
    assert spell("##") == b"##"


def test_sentence_piece_pieces():
    spell = spelling_of(sentence_piece())
    assert spell("▁hi") == b" hi"
    assert spell("<0xF0>") == b"\xf0"
    assert spell("<0xF0>x") == b"<0xF0>x"


def test_byte_names_are_text_in_a_vocabulary_without_byte_fallback():
    spec = sentence_piece()
    spec["model"]["byte_fallback"] = False
    assert spelling_of(spec)("<0xF0>") == b"<0xF0>"


def test_endings_of_words_are_not_shown():
    tokenizer = Tokenizer(models.BPE(vocab={"t": 0, "t</w>": 1}, merges=[], end_of_word_suffix="</w>"))
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    spell = spelling_of(json.loads(tokenizer.to_str()))
    assert (spell("t</w>"), spell("t")) == (b"t", b"t")
