import struct
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from model.checkpoints.gguf import GGUF
from model.errors import CheckpointError

U8, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 6, 7, 8, 9, 10
Tensor = tuple[str, tuple[int, ...], int, int]


def _string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _field(name: str, kind: int, content: bytes) -> bytes:
    return _string(name.encode()) + struct.pack("<I", kind) + content


def _array(kind: int, count: int, content: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + content


def _file(fields: Sequence[bytes] = (), tensors: Sequence[Tensor] = (), data: bytes = b"\0" * 64) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)) + b"".join(fields)
    for name, dims, kind, offset in tensors:
        head += _string(name.encode()) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        head += struct.pack("<IQ", kind, offset)
    return head + b"\0" * (-len(head) % 32) + data


def _open(folder: Path, content: bytes) -> GGUF:
    (folder / "m.gguf").write_bytes(content)
    return GGUF(folder / "m.gguf")


def test_metadata_of_every_kind_is_read(tmp_path: Path) -> None:
    fields = {
        "one": (U32, struct.pack("<I", 7), 7),
        "words": (
            ARRAY,
            _array(STRING, 3, _string(b"a") + _string(b"") + _string("é".encode())),
            ["a", "", "é"],
        ),
        "numbers": (ARRAY, _array(F32, 2, struct.pack("<2f", 0.5, -1)), [0.5, -1.0]),
        "flags": (ARRAY, _array(BOOL, 2, b"\1\0"), [True, False]),
        "wide": (ARRAY, _array(U64, 1, b"\xff" * 8), [2**64 - 1]),
        "no numbers": (ARRAY, _array(U8, 0), []),
        "no words": (ARRAY, _array(STRING, 0), []),
        "last": (STRING, _string(b"end"), "end"),
    }
    found = _open(tmp_path, _file([_field(name, *part[:2]) for name, part in fields.items()])).fields
    assert {name: found[name] for name in fields} == {name: part[2] for name, part in fields.items()}


def test_tensors_lie_where_the_header_says(tmp_path: Path) -> None:
    data = struct.pack("<8f", *range(8)) + struct.pack("<2f", 8, 9)
    source = _open(tmp_path, _file(tensors=[("b", (2,), 0, 32), ("a", (4, 2), 0, 0)], data=data))
    assert torch.equal(source.tensor("a"), torch.arange(8.0).reshape(2, 4))
    assert torch.equal(source.tensor("b"), torch.tensor([8.0, 9.0]))


DAMAGE: dict[str, tuple[bytes, str]] = {
    "the same bytes twice": (_file(tensors=[("a", (8,), 0, 0), ("b", (8,), 0, 0)]), "a and b share bytes"),
    "some bytes twice": (_file(tensors=[("b", (8,), 0, 32), ("a", (9,), 0, 0)]), "a and b share bytes"),
    "2^40 elements": (_file(tensors=[("a", (2**40,), 0, 0)]), "a lies at 0 to 4398046511104"),
    "elements that wrap to none": (_file(tensors=[("a", (2**32, 2**32), 0, 0)]), "past the end"),
    "elements that wrap to few": (_file(tensors=[("a", (2**63 + 1, 2), 0, 0)]), "past the end"),
    "an offset that wraps": (_file(tensors=[("a", (2,), 0, 2**64 - 32)]), "past the end"),
    "a quantised tensor past the end": (_file(tensors=[("a", (128,), 8, 0)]), "a lies at 0 to 136"),
    "half a block": (_file(tensors=[("a", (3,), 3, 0)]), "block size"),
    "an unknown type": (_file(tensors=[("a", (3,), 99, 0)]), "99 is not a valid"),
    "many dimensions": (_file(tensors=[("a", (1,) * 70, 0, 0)]), "a has 70 dimensions"),
    "one name twice": (_file(tensors=[("a", (2,), 0, 0), ("a", (2,), 0, 32)]), "duplicated"),
    "arrays of arrays": (_file([_field("x", ARRAY, _array(ARRAY, 1) * 5000)]), "arrays of arrays"),
    "strings that are not there": (
        _file([_field("x", ARRAY, _array(STRING, 2**40))]),
        "1099511627776 strings",
    ),
    "numbers that are not there": (
        _file([_field("x", ARRAY, _array(U8, 2**40))]),
        "in the middle of a value",
    ),
    "fields that are not there": (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**62), "claims 4611686018427387904"),
    "tensors that are not there": (b"GGUF" + struct.pack("<IQQ", 3, 2**62, 0), "in the middle of a value"),
    "a long name that is not there": (
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63),
        "in the middle of a value",
    ),
    "an alignment of nothing": (
        _file([_field("general.alignment", U32, b"\0" * 4)], [("a", (2,), 0, 0)]),
        "alignment",
    ),
    "a name that is no text": (_file([_string(b"\xff") + struct.pack("<II", U32, 1)]), "utf-8"),
    "a text that is none": (_file([_field("x", STRING, _string(b"\xff"))]), "utf-8"),
}


@pytest.mark.parametrize(("content", "named"), DAMAGE.values(), ids=DAMAGE)
def test_a_header_that_lies_is_refused_and_costs_no_memory(
    tmp_path: Path, content: bytes, named: str
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=rf"m\.gguf is not a readable GGUF file: .*{named}"):
            _open(tmp_path, content)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_many_numbers_cost_little_more_than_their_bytes(tmp_path: Path) -> None:
    content = _file([_field("x", ARRAY, _array(U8, 2**20, bytes(2**20)))])
    tracemalloc.start()
    try:
        assert len(_open(tmp_path, content).fields["x"]) == 2**20
        assert tracemalloc.get_traced_memory()[1] < 24 * 2**20
    finally:
        tracemalloc.stop()
