"""From a model's id to its files: a built-in, the Hugging Face Hub, or a folder of the owner's."""

import hashlib
import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app import memory
from app.services.model_status import Card
from app.settings import Settings
from model import hub_source, zoo
from model.errors import CheckpointError, FetchError, OverBudget, Refused, UnknownModel
from model.fetching import Listener, SourceError

LOCAL = "local:"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,127}")
READ_FILES = (*hub_source.TEXT_FILES, hub_source.INDEX)


@dataclass(frozen=True)
class Present:
    """A model's files on this machine: what to load, which revision they are, and their size in bytes."""

    path: Path
    revision: str
    size: int
    licence: str | None


class ModelSource(ABC):
    """Where one model's files come from. `lane` names the queue its downloads wait in."""

    lane: str
    card: Card

    @abstractmethod
    def present(self) -> Present | None:
        """The files, if they are here and nothing has to be fetched."""

    @abstractmethod
    def fetch(self, listener: Listener) -> Present:
        """Bring the files here. Raises FetchError, OverBudget or Refused."""


class BuiltIn(ModelSource):
    """A model of zoo.toml."""

    lane = "built-in"

    def __init__(self, entry: zoo.ZooEntry, settings: Settings) -> None:
        self.entry, self.settings = entry, settings
        self.card = Card(
            entry.id,
            entry.title,
            builtin=True,
            family=entry.family,
            revision=entry.revision,
            licence=entry.licence,
            size=entry.bytes,
            example=next(iter(entry.examples), None),
            recording=entry.recording,
            opens=entry.opens,
        )

    def present(self) -> Present | None:  # noqa: D102
        path = zoo.local(self.entry, self.settings.cache_dir)
        return None if path is None else self._as_present(path)

    def fetch(self, listener: Listener) -> Present:  # noqa: D102
        cache, hub = self.settings.cache_dir, self.settings.hub
        return self._as_present(zoo.fetch(self.entry, cache, listener.progress, listener.tell, hub=hub))

    def _as_present(self, path: Path) -> Present:
        return Present(path, self.entry.revision, self.entry.bytes, self.entry.licence)


class HubModel(ModelSource):
    """A repository `org/name` of the Hugging Face Hub at a branch, tag or commit."""

    lane = "hub"

    def __init__(self, repo: str, revision: str | None, settings: Settings) -> None:
        self.repo, self.revision, self.settings = repo, revision or "main", settings
        name = repo if revision is None else f"{repo}@{revision}"
        self.card = Card(name, name, builtin=False, revision=revision)

    def present(self) -> Present | None:
        """None: only the Hub knows whether a branch has moved on, and its client keeps what it has."""
        return None

    def fetch(self, listener: Listener) -> Present:  # noqa: D102
        with tempfile.TemporaryDirectory(prefix="attention-atlas-") as scratch:
            try:
                return self._fetch(Path(scratch), listener)
            except SourceError as failure:
                detail = f"{self.card.id} could not be fetched from the Hugging Face Hub: {failure.reason}."
                raise FetchError(detail, model=self.card.id, log=failure.log) from failure
            except OSError as error:
                why = error.strerror or str(error)
                detail = (
                    f"{self.card.id} could not be fetched: {why}; make room or set HF_HOME to another disk."
                )
                raise FetchError(detail, model=self.card.id) from error

    def _fetch(self, scratch: Path, listener: Listener) -> Present:
        try:
            listing = hub_source.list_files(self.repo, self.revision, scratch)
        except SourceError as failure:
            kept = hub_source.cached(self.repo, self.revision, scratch)
            if kept is None:
                raise
            listener.tell(f"{failure.reason}; using the copy this machine already has")
            return Present(kept, kept.name, folder_bytes(kept), None)
        files = hub_source.wanted(listing.files)
        self._check_size(sum(files.values()))
        path = hub_source.download(listing, list(files), scratch, listener)
        return Present(path, path.name, sum(files.values()), listing.licence)

    def _check_size(self, size: int) -> None:
        budget = self.settings.model_bytes or memory.model_budget("cpu")
        if budget is not None and size > budget:
            raise OverBudget(
                f"{self.card.id} takes {zoo.megabytes(size)} and this server keeps at most"
                f" {zoo.megabytes(budget)} of models; choose a smaller one or raise ATLAS_MODEL_BYTES.",
                needed=size,
                budget=budget,
            )


class LocalModel(ModelSource):
    """A folder or `.gguf` file directly below one of the owner's model roots."""

    lane = "local"

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.path = root, root / name
        self.card = Card(
            f"{LOCAL}{root.name}/{name}",
            name,
            builtin=False,
            size=folder_bytes(self.path),
            problem=unreadable(self.path),
        )

    def present(self) -> Present | None:
        """The files as they are now, None if gone.

        Raises CheckpointError where they cannot be read, Refused where a link leads out of the root.
        """
        files = readable_files(self.path)
        if not files:
            if problem := unreadable(self.path):
                raise CheckpointError(problem)
            return None
        for file in files:
            if not file.resolve().is_relative_to(self.root):
                raise Refused(
                    f"{self.card.id} is refused because {file.name} is a link that leads out of the model"
                    " root; put the file itself there."
                )
        state = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        revision = hashlib.sha256(repr(state).encode()).hexdigest()[: zoo.REVISION_DIGITS]
        return Present(self.path, revision, folder_bytes(self.path), None)

    def fetch(self, listener: Listener) -> Present:  # noqa: ARG002
        """Raises UnknownModel: there is nowhere to fetch from once the files have gone."""
        raise UnknownModel(f"{self.card.id} is no longer there; put it back or choose another model.")


def resolve(model_id: str, revision: str | None, settings: Settings) -> ModelSource:
    """The source behind an id: a built-in name, `org/name`, `org/name@revision`, or `local:<root>/<name>`.

    Raises UnknownModel where no such thing can exist, Refused where the server's owner does not allow it.
    """
    entry = zoo.entries().get(model_id)
    if entry is not None or model_id.startswith(LOCAL):
        source = BuiltIn(entry, settings) if entry is not None else _local(model_id, settings)
        if revision not in {None, source.card.revision}:
            raise UnknownModel(f"{model_id} has no revision {revision!r}; leave the revision out.")
        return source
    return _hub(model_id, revision, settings)


def catalogue(settings: Settings) -> Iterator[ModelSource]:
    """Everything that can be offered without asking a network: the built-ins, then the owner's folders."""
    for entry in zoo.entries().values():
        yield BuiltIn(entry, settings)
    for root in settings.model_root:
        for path in sorted(root.iterdir()):
            if readable_files(path) or unreadable(path):
                yield LocalModel(root, path.name)


def readable_files(path: Path) -> list[Path]:
    """The files of a model folder (or the one `.gguf` file) that would be read; empty when it is no model."""
    if path.suffix == ".gguf":
        return [path] if path.is_file() else []
    config = path / "config.json"
    if not os.access(path, os.R_OK | os.X_OK) or not config.is_file() or not os.access(config, os.R_OK):
        return []
    weights = sorted(path.glob("*.safetensors"))
    texts = [path / name for name in READ_FILES if (path / name).is_file()]
    return texts + weights if weights else []


def unreadable(path: Path) -> str | None:
    """Why what looks like a model cannot be read, in a sentence; None for what can, and for other things."""
    if path.suffix == ".gguf":
        return None if path.is_file() else f"{path.name} is not a file: put the model's file itself there."
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        return f"The folder {path.name} may not be opened by the server: change its permissions."
    return _unreadable_folder(path, path / "config.json") if path.is_dir() else None


def _unreadable_folder(path: Path, config: Path) -> str | None:
    weights = any(path.glob("*.safetensors"))
    if not os.path.lexists(config):
        return (
            f"{path.name} has weights but no config.json: put the model's own beside them."
            if weights
            else None
        )
    if not config.is_file() or not os.access(config, os.R_OK):
        return f"{path.name}'s config.json is no file that the server can read: put the model's own there."
    if not weights:
        return f"{path.name} has a config.json but no .safetensors file: save its weights as one."
    return None


def folder_bytes(path: Path) -> int:
    """Bytes of the files that would be read, links followed."""
    return sum(file.stat().st_size for file in readable_files(path))


def _names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir() if readable_files(path) or unreadable(path)}


def _local(model_id: str, settings: Settings) -> ModelSource:
    root_name, _, name = model_id.removeprefix(LOCAL).partition("/")
    for root in settings.model_root:
        # Compared with what lies there, so that no spelling of a path can lead anywhere else.
        if root.name == root_name and name in _names(root):
            return LocalModel(root, name)
    raise UnknownModel(
        f"There is no model {model_id!r} below the folders of --model-root; choose one that is listed.",
        model=model_id,
    )


def _hub(model_id: str, revision: str | None, settings: Settings) -> ModelSource:
    repo, at, pinned = model_id.partition("@")
    wanted = revision or (pinned if at else None)
    possible = HUB_ID.fullmatch(repo) and ".." not in repo
    if not possible or (wanted is not None and not REVISION.fullmatch(wanted)):
        names = ", ".join(zoo.entries())
        raise UnknownModel(
            f"There is no model {model_id!r}; choose one of {names}, a Hugging Face id such as"
            f" google-bert/bert-base-uncased, or {LOCAL}<root>/<name>.",
            model=model_id,
        )
    if not settings.hub:
        raise Refused(
            f"{model_id} would come from the Hugging Face Hub, which this server's owner has switched off;"
            " choose a listed model or set ATLAS_HUB=on.",
            model=model_id,
        )
    return HubModel(repo, wanted, settings)
