"""Get files into the cache so that a name never stands for half a model.

Everything happens in a private staging folder on the cache's own file system; the last step is one rename. A
process that is killed leaves only staging behind, which the next fetch of the same model sweeps away.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

CHUNK = 1 << 20
WAIT_SECONDS = 0.2

Progress = Callable[[int, int], None]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Listener:
    """Who follows a download.

    `progress(done, total)` counts its bytes, about ten times a second; an exception it raises cancels the
    download and passes through. `tell` gets the sentences a user should see: a wait, a second source.
    """

    progress: Progress
    tell: Tell


class SourceError(Exception):
    """One source could not deliver; `reason` says why and what to do, as a clause without a full stop."""

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.log = log


@dataclass(frozen=True)
class PinnedFile:
    """A file known by its content: `bytes` long, with this SHA-256."""

    name: str
    bytes: int
    sha256: str


@contextlib.contextmanager
def exclusive(area: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the right to fetch into `area`, across processes; until then call `waiting` again and again."""
    area.mkdir(parents=True, exist_ok=True)
    lock = FileLock(area.with_name(area.name + ".lock"), thread_local=False)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=WAIT_SECONDS)
        except Timeout:
            waiting()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def staging(area: Path) -> Iterator[Path]:
    """A fresh private folder below `area`, gone afterwards; what dead processes left there goes first."""
    for leftover in area.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=area))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def copy_pinned(source: IO[bytes], file: PinnedFile, folder: Path) -> None:
    """Write `source` to `folder`/`file.name`, refusing any content but the pinned one.

    Raises SourceError where length or checksum differ; never writes more than `file.bytes` + one chunk.
    """
    digest, count = hashlib.sha256(), 0
    with (folder / file.name).open("wb") as target:
        while count <= file.bytes and (chunk := source.read(CHUNK)):
            target.write(chunk)
            digest.update(chunk)
            count += len(chunk)
        target.flush()
        # A rename may reach the disk before the data it names: after a power cut, a finished-looking ruin.
        os.fsync(target.fileno())
    if count != file.bytes or digest.hexdigest() != file.sha256:
        raise SourceError(
            f"the checksum of {file.name} differs from the expected one, so it was damaged on the way or is"
            " another file; try again, and if it stays so report it"
        )


def publish(finished: Path, target: Path, staging_folder: Path) -> None:
    """Give a finished folder its final name in one step, moving a damaged predecessor out of the way."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.replace(staging_folder / "damaged")
    finished.replace(target)
