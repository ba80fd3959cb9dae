from pathlib import Path

import pytest

from model.checkpoints.tokenizer_smiles import smiles_tokenizer
from model.errors import CheckpointError
from model.text import TextEncoder

SPECIAL = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SYMBOLS = [*"cC()O1=N.", "Cl", "Br", ">>", "%10", "[Na+]", "\\", "/"]


def _written(folder: Path, tokens: list[str]) -> Path:
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    return folder


@pytest.fixture
def encoder(tmp_path: Path) -> TextEncoder:
    found = smiles_tokenizer(_written(tmp_path, [*SPECIAL, *SYMBOLS]))
    assert found is not None
    return found


def _texts(encoder: TextEncoder, text: str, pair: str | None = None) -> list[str]:
    return [token.text for token in encoder.encode(text, pair).tokens]


def test_a_reaction_is_cut_into_its_symbols(encoder: TextEncoder) -> None:
    text = "[Na+].ClCC=O%10>>BrC/C\\C"
    found = encoder.encode(text)
    expected = ["[Na+]", ".", "Cl", "C", "C", "=", "O", "%10", ">>", "Br", "C", "/", "C", "\\", "C"]
    assert [token.text for token in found.tokens] == ["[CLS]", *expected, "[SEP]"]
    spans = [token.span for token in found.tokens[1:-1]]
    assert [text[slice(*span)] for span in spans if span] == expected
    assert found.notices == []
    assert encoder.decode(found.ids[1:-1]) == text


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("CXyC", ["C", "[UNK]", "C"]),
        ("C[K+]C", ["C", "[UNK]", "C"]),
        ("C C", ["C", "[UNK]", "C"]),
        ("é", ["[UNK]"]),
        ("CIC", ["C", "[UNK]", "C"]),
    ],
)
def test_what_is_no_known_symbol_is_told(encoder: TextEncoder, text: str, cut: list[str]) -> None:
    assert _texts(encoder, text) == ["[CLS]", *cut, "[SEP]"]
    [notice] = encoder.encode(text).notices
    assert "[UNK]" in notice


def test_white_space_around_is_no_symbol(encoder: TextEncoder) -> None:
    assert _texts(encoder, " CC\n") == ["[CLS]", "C", "C", "[SEP]"]


def test_a_symbol_can_be_masked(encoder: TextEncoder) -> None:
    found = encoder.encode("C[MASK]C")
    assert found.ids[2] == encoder.mask_id
    assert "special token" in found.notices[0]


def test_a_pair_has_two_segments(encoder: TextEncoder) -> None:
    found = encoder.encode("CC", "O")
    assert [token.text for token in found.tokens] == ["[CLS]", "C", "C", "[SEP]", "O", "[SEP]"]
    assert found.segments == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("tokens", [None, [*SPECIAL, "the", "##s"], [*SPECIAL, "C", ""]])
def test_another_vocabulary_is_left_alone(tmp_path: Path, tokens: list[str] | None) -> None:
    assert smiles_tokenizer(_written(tmp_path, tokens) if tokens else tmp_path) is None


@pytest.mark.parametrize(
    ("tokens", "fault"),
    [([*SPECIAL[:-1], "C"], r"lacks \[MASK\]"), ([*SPECIAL, "C", "C"], "repeats a token")],
)
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, tokens: list[str], fault: str) -> None:
    with pytest.raises(CheckpointError, match=rf"vocab\.txt .* {fault}"):
        smiles_tokenizer(_written(tmp_path, tokens))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointError, match="not readable text"):
        smiles_tokenizer(tmp_path)
