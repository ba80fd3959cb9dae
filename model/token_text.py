"""What text a token stands for, whatever way its tokenizer spells it.

A vocabulary spells text in GPT-2's byte alphabet ("Ġare"), with SentencePiece's marks ("▁are", "<0xF0>"),
with prefixes and suffixes ("##ing", "ing</w>"), or plainly. Each way becomes bytes, and bytes become text in
one way.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from model.tokenizer_spec import SPACE_MARK, Spec, is_byte_level, marks_spaces

Spelling = Callable[[str], bytes]

_byte_piece = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# The error handler "surrogateescape" turns each byte that belongs to no character into one of these.
_broken_bytes = re.compile("[\udc80-\udcff]+")


def spelling_of(spec: Spec) -> Spelling:
    """How a tokenizer.json spells its vocabulary: a function from a piece to the UTF-8 it stands for."""
    model = spec["model"]
    if is_byte_level(spec):
        return _byte_level
    if marks_spaces(spec):
        return _sentence_piece_with_bytes if model.get("byte_fallback") else sentence_piece
    return _affixed(model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or "")


def token_texts(chunks: Sequence[bytes]) -> list[str]:
    """The text of each token of a sequence, from the bytes each stands for.

    Bytes that are only part of a character show as the character with the part: the three tokens of "💩" are
    "💩·1/3", "💩·2/3", "💩·3/3". Bytes that complete no character with their neighbours show as "‹F0 9F›".
    """
    owners = [index for index, chunk in enumerate(chunks) for _ in chunk]
    texts = [""] * len(chunks)
    for character, start, end in _characters(b"".join(chunks)):
        sharing = sorted(set(owners[start:end]))
        for part, owner in enumerate(sharing, start=1):
            texts[owner] += character if len(sharing) == 1 else f"{character}·{part}/{len(sharing)}"
    return [_broken_bytes.sub(_in_hex, text) for text in texts]


def sentence_piece(piece: str) -> bytes:
    """The bytes a SentencePiece piece stands for."""
    return piece.replace(SPACE_MARK, " ").encode()


def _characters(stream: bytes) -> Iterator[tuple[str, int, int]]:
    position = 0
    for character in stream.decode("utf-8", "surrogateescape"):
        size = len(character.encode("utf-8", "surrogateescape"))
        yield character, position, position + size
        position += size


def _in_hex(match: re.Match[str]) -> str:
    return f"‹{match[0].encode('utf-8', 'surrogateescape').hex(' ').upper()}›"


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's spelling of the 256 bytes: printable Latin-1 as itself, the others from U+0100 up, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_alphabet = _byte_alphabet()


def _byte_level(piece: str) -> bytes:
    if all(character in _alphabet for character in piece):
        return bytes(_alphabet[character] for character in piece)
    return piece.encode()


def _sentence_piece_with_bytes(piece: str) -> bytes:
    match = _byte_piece.fullmatch(piece)
    return bytes([int(match[1], 16)]) if match else sentence_piece(piece)


def _affixed(prefix: str, suffix: str) -> Spelling:
    def spell(piece: str) -> bytes:
        bare = piece.removeprefix(prefix).removesuffix(suffix)
        return (bare or piece).encode()

    return spell
