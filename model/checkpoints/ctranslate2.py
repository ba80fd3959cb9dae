"""`model.bin`, the format of CTranslate2: version 6, little-endian, one variable after the other.

u32 version, specification, u32 revision, u32 count; then each variable as name, u8 rank, u32 dimensions, u8
type, u32 byte count, bytes; then u32 count and the aliases, each a name and the variable it stands for. A
string is u16 length and bytes that end in NUL (`model_spec.py` of CTranslate2).
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from model.errors import CheckpointError

VERSION = 6
_TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
_LARGEST_RANK = 8


@dataclass(frozen=True)
class Variable:
    """Where a variable lies in the file."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int

    @property
    def bytes(self) -> int:
        """Its size in the file."""
        return math.prod(self.shape) * self.dtype.itemsize


class CTranslate2:
    """The variables of one `model.bin`; an alias is a name like any other.

    Raises CheckpointError where the file is damaged. Nothing is allocated by a size that it only claims.
    """

    def __init__(self, file: Path) -> None:
        self.origin = file.name
        try:
            with file.open("rb") as stream:
                self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{file.name} cannot be read: {error}.") from error
        cursor = _Cursor(self._bytes, file.name)
        version = cursor.number("I")
        if version != VERSION:
            said = f"it says {version}"
            raise CheckpointError(f"{file.name} is not a CTranslate2 file of version {VERSION}: {said}.")
        self.specification = cursor.text()
        self.revision = cursor.number("I")
        self._variables = _read_variables(cursor)
        self._variables |= _read_aliases(cursor, self._variables)
        cursor.finish()

    @property
    def names(self) -> frozenset[str]:
        """Names of all variables and aliases."""
        return frozenset(self._variables)

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """The shape of a variable. Raises CheckpointError where it is missing or of another rank."""
        if name not in self._variables:
            raise CheckpointError(f"{self.origin} lacks the tensor {name}.", tensor=name)
        shape = self._variables[name].shape
        if len(shape) != rank:
            raise CheckpointError(
                f"{self.origin} gives {name} the shape {list(shape)}, not one of {rank} dimensions.",
                tensor=name,
            )
        return shape

    def scalars(self) -> dict[str, int | float]:
        """The variables without dimensions: what the specification says of itself."""
        return {name: self.tensor(name).item() for name, found in self._variables.items() if not found.shape}

    def tensor(self, name: str) -> Tensor:
        """One variable, copied out of the file."""
        found = self._variables[name]
        content = bytearray(self._bytes[found.start : found.start + found.bytes])
        return torch.frombuffer(content, dtype=found.dtype).reshape(found.shape)


class _Cursor:
    """Reads forward through the file and never past its end."""

    def __init__(self, content: mmap.mmap, name: str) -> None:
        self.name, self._content, self.position = name, content, 0

    def number(self, kind: str) -> int:
        size = struct.calcsize(f"<{kind}")
        start = self.skip(size)
        value: int = struct.unpack(f"<{kind}", self._content[start : start + size])[0]
        return value

    def text(self) -> str:
        length = self.number("H")
        start = self.skip(length)
        raw = self._content[start : start + length]
        if raw[-1:] != b"\0" or b"\0" in raw[:-1]:
            raise CheckpointError(
                f"{self.name} has a name at byte {start} that does not end where it should."
            )
        try:
            return raw[:-1].decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.name} has a name at byte {start} that is not UTF-8.") from error

    def skip(self, size: int, tensor: str | None = None) -> int:
        """Moves on by `size` bytes, those of a `tensor` or of a header, and returns where they start."""
        start, end = self.position, self.position + size
        if end > len(self._content):
            what = tensor or "a header"
            raise CheckpointError(
                f"{self.name} ends after {len(self._content)} bytes, amid {what}: fetch it again.",
                tensor=tensor,
            )
        self.position = end
        return start

    def finish(self) -> None:
        left = len(self._content) - self.position
        if left:
            raise CheckpointError(
                f"{self.name} goes on for {left} bytes after its last alias: it is damaged."
            )


def _read_variables(cursor: _Cursor) -> dict[str, Variable]:
    variables: dict[str, Variable] = {}
    for _ in range(cursor.number("I")):
        name = cursor.text()
        if name in variables:
            raise CheckpointError(f"{cursor.name} holds {name} twice.", tensor=name)
        variables[name] = _read_variable(cursor, name)
    return variables


def _read_variable(cursor: _Cursor, name: str) -> Variable:
    rank = cursor.number("B")
    shape = tuple(cursor.number("I") for _ in range(rank))
    kind, size = cursor.number("B"), cursor.number("I")
    if rank > _LARGEST_RANK or kind >= len(_TYPES) or 0 in shape:
        raise CheckpointError(
            f"{cursor.name} gives {name} {rank} dimensions {list(shape[:_LARGEST_RANK])} and type {kind}.",
            tensor=name,
        )
    found = Variable(shape, _TYPES[kind], cursor.position)
    if found.bytes != size:
        raise CheckpointError(
            f"{cursor.name} gives {name} {size} bytes, but its shape {list(shape)} needs {found.bytes}.",
            tensor=name,
        )
    cursor.skip(size, name)
    return found


def _read_aliases(cursor: _Cursor, variables: dict[str, Variable]) -> dict[str, Variable]:
    aliases: dict[str, Variable] = {}
    for _ in range(cursor.number("I")):
        name, target = cursor.text(), cursor.text()
        if name in variables or name in aliases or target not in variables:
            raise CheckpointError(f"{cursor.name} cannot call {target} {name}: it is damaged.", tensor=name)
        aliases[name] = variables[target]
    return aliases
