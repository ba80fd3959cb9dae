"""`pytorch_model.bin`: tensors in a pickle, which is a program. Only what makes tensors is run."""

import mmap
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoints.pickle_scan import scan
from model.checkpoints.source import check_shard, weight_map
from model.errors import CheckpointError

SINGLE, INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_ZIP, _PICKLE = b"PK\x03\x04", b"\x80\x02"
# Before 2020 a file was five pickles (magic, version, machine, tensors, order of storages), then bytes.
_LEADING_PICKLES = 3
_COUNT_BYTES = 8


class PickledTensors:
    """The tensors of a folder's `pytorch_model.bin`, or of the shards its index lists.

    Raises CheckpointError for a file that is damaged, or that holds or would call anything but tensors.
    """

    def __init__(self, folder: Path) -> None:
        self.origin = folder.name
        self._tensors: dict[str, Tensor] = {}
        if (folder / SINGLE).is_file():
            self._tensors = dict(_load(folder / SINGLE))
            return
        listed = {name: folder / file for name, file in weight_map(folder / INDEX).items()}
        for file in sorted(set(listed.values())):
            held = _load(file)
            check_shard(file, set(held), listed)
            self._tensors |= held

    @staticmethod
    def lies_in(folder: Path) -> bool:
        """Whether the folder has such a file."""
        return (folder / SINGLE).is_file() or (folder / INDEX).is_file()

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._tensors)

    def tensor(self, name: str) -> Tensor:
        """One tensor."""
        return self._tensors[name]


def _load(file: Path) -> Mapping[str, Tensor]:
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            zipped = whole[: len(_ZIP)] == _ZIP
            data, counts = _scan_zip(file) if zipped else (_scan_legacy(file, whole), True)
        content = torch.load(file, map_location="cpu", weights_only=True, mmap=zipped)
    except CheckpointError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        reason = str(error).partition("\n")[0].rstrip(".")
        raise CheckpointError(f"{file.name} is not a readable pickle of tensors: {reason}.") from error
    _check(file, content)
    _check_bytes(file, content, data, counted=counts)
    return content  # type: ignore[no-any-return]


def _scan_zip(file: Path) -> tuple[int, bool]:
    """Scans the pickle in an archive; returns how many bytes of tensors lie beside it."""
    size = file.stat().st_size
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
        if packed or sum(entry.file_size for entry in entries) > size:
            raise CheckpointError(f"{file.name} unpacks to more than it holds: torch writes no such file.")
        if len({entry.filename for entry in entries}) < len(entries):
            raise CheckpointError(f"{file.name} holds two entries of one name: torch writes no such file.")
        pickles = [entry for entry in entries if entry.filename.endswith(".pkl")]
        for entry in pickles:
            with archive.open(entry) as stream:
                scan(stream, file.name, size)
    return sum(entry.file_size for entry in entries if "/data/" in entry.filename), False


def _scan_legacy(file: Path, whole: mmap.mmap) -> int:
    """Scans the pickles at the start of the old format; returns how many bytes of tensors follow."""
    if whole[: len(_PICKLE)] != _PICKLE:
        raise CheckpointError(f"{file.name} is neither a zip archive nor a pickle: torch wrote no such file.")
    for _ in range(_LEADING_PICKLES):
        scan(whole, file.name, 2**128)  # type: ignore[arg-type]
    for _ in range(2):
        scan(whole, file.name, len(whole))  # type: ignore[arg-type]
    return len(whole) - whole.tell()


def _check(file: Path, content: object) -> None:
    if not isinstance(content, Mapping) or not content:
        raise CheckpointError(f"{file.name} holds a {type(content).__name__}, not tensors by name.")
    for name, tensor in content.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise CheckpointError(f"{file.name} holds {name!r}, which is no tensor.", tensor=str(name))
        stored = tensor.untyped_storage().nbytes()
        if tensor.numel() == 0 or tensor.numel() * tensor.element_size() > stored:
            raise CheckpointError(
                f"{file.name} gives {name} the shape {list(tensor.shape)}, but {stored} bytes.", tensor=name
            )


def _check_bytes(file: Path, content: Mapping[str, Tensor], data: int, *, counted: bool) -> None:
    """Every byte must belong to a tensor: memory that no byte of the file fills would be read as weights."""
    storages = {
        storage.data_ptr(): storage.nbytes() for storage in map(Tensor.untyped_storage, content.values())
    }
    needed = sum(storages.values()) + counted * _COUNT_BYTES * len(storages)
    if needed != data:
        raise CheckpointError(
            f"{file.name} has {data} bytes of tensors where {needed} are needed: fetch it again."
        )
