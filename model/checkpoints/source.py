"""Where tensors come from: a file format behind one small interface, read one tensor at a time."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import safetensors
from torch import Tensor

from model.errors import CheckpointError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


class Source(Protocol):
    """Named tensors and the name of the file or folder they come from."""

    @property
    def origin(self) -> str:
        """What to call the source in an error."""

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""

    def tensor(self, name: str) -> Tensor:
        """One tensor. Raises CheckpointError where it cannot be read."""


class Safetensors:
    """The tensors of a folder's `model.safetensors`, or of the shards its index lists."""

    def __init__(self, folder: Path) -> None:
        self.origin = folder.name
        self._file_of = _locate(folder)
        self._open: dict[Path, safetensors.safe_open] = {}

    @staticmethod
    def lies_in(folder: Path) -> bool:
        """Whether the folder has such a file."""
        return (folder / SINGLE).is_file() or (folder / INDEX).is_file()

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._file_of)

    def tensor(self, name: str) -> Tensor:
        """One tensor. Raises CheckpointError where it cannot be read."""
        file = self._file_of[name]
        if file not in self._open:
            self._open[file] = _open(file)
        try:
            tensor: Tensor = self._open[file].get_tensor(name)  # type: ignore[no-untyped-call]
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointError(
                f"{file.name} does not hold a readable {name}: {error}.", tensor=name
            ) from error
        return tensor


class WithoutPrefix:
    """A source whose names are read without a leading prefix, as in `bert.encoder…` for `encoder…`.

    Raises CheckpointError where it holds a tensor both with and without the prefix.
    """

    def __init__(self, source: Source, prefix: str) -> None:
        self.origin = source.origin
        self._source = source
        self._original: dict[str, str] = {}
        for name in sorted(source.names):
            short = name.removeprefix(prefix)
            if short in self._original:
                raise CheckpointError(
                    f"{source.origin} holds {short} twice, with {prefix} before it and without."
                )
            self._original[short] = name

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors, without the prefix."""
        return frozenset(self._original)

    def tensor(self, name: str) -> Tensor:
        """One tensor. Raises CheckpointError where it cannot be read."""
        return self._source.tensor(self._original[name])


def _locate(folder: Path) -> dict[str, Path]:
    index, single = folder / INDEX, folder / SINGLE
    if single.is_file():
        return dict.fromkeys(_open(single).keys(), single)  # type: ignore[no-untyped-call]
    if not index.is_file():
        raise CheckpointError(f"{folder.name} holds neither {SINGLE} nor {INDEX} nor pytorch_model.bin.")
    listed = {name: folder / file for name, file in weight_map(index).items()}
    for file in sorted(set(listed.values())):
        check_shard(file, set(_open(file).keys()), listed)  # type: ignore[no-untyped-call]
    return listed


def check_shard(file: Path, held: set[str], listed: Mapping[str, Path]) -> None:
    """Raises CheckpointError unless a shard holds exactly the tensors that its index places there."""
    for name in sorted(held ^ {name for name, place in listed.items() if place == file}):
        says = "which the index does not place there" if name in held else "but it does not"
        verb = "holds" if name in held else "should hold"
        raise CheckpointError(f"{file.name} {verb} the tensor {name}, {says}.", tensor=name)


def weight_map(index: Path) -> Mapping[str, str]:
    """The shard of each tensor. Raises CheckpointError for a damaged index, or one that leaves its folder."""
    try:
        table = json.loads(index.read_text("utf-8"))["weight_map"]
        names = {str(name): str(file) for name, file in table.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{index.name} is not a readable index of shards.") from error
    for file in set(names.values()):
        if Path(file).name != file:
            raise CheckpointError(f"{index.name} points outside its folder, at {file}.")
        if not (index.parent / file).is_file():
            raise CheckpointError(f"{index.name} lists the shard {file}, which is not there.")
    return names


def _open(file: Path) -> safetensors.safe_open:
    try:
        return safetensors.safe_open(file, framework="pt")
    except (OSError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{file.name} is not a readable safetensors file: {error}.") from error
