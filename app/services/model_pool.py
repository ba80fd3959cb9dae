"""The models in memory, fetched and loaded in the background: no request waits for a download."""

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import memory
from app.services.lanes import Lanes
from app.services.model_sources import ModelSource, Present, catalogue, resolve
from app.services.model_status import ModelStatus, first_status, not_ready
from app.settings import Settings
from model.errors import AtlasError, CheckpointError, OverBudget
from model.fetching import Listener
from model.zoo import megabytes

if TYPE_CHECKING:
    from model.loading import LoadedModel

LOADING_LANE = "loading"
HEARTBEAT_SECONDS = 1.0
FOLLOW_SECONDS = 0.1

logger = logging.getLogger(__name__)


class _Closing(Exception):
    """The pool is being closed: unwinds a download."""


@dataclass
class _Slot:
    """One model's place in the pool; every field is guarded by the pool's condition."""

    source: ModelSource
    status: ModelStatus
    model: "LoadedModel | None" = None
    error: AtlasError | None = None
    note: str | None = None
    used: int = 0


class ModelPool:
    """Loaded models by id, within a budget of memory.

    `load` turns a path into a model. Downloads of built-ins, downloads from the Hub, and loading each have a
    thread, started when first needed. All methods may be called from any thread and return at once.
    """

    def __init__(self, settings: Settings, load: Callable[[Path], "LoadedModel"]) -> None:
        self._settings = settings
        self._load = load
        self._changed = threading.Condition()
        self._slots: dict[str, _Slot] = {}
        self._clock = itertools.count(1)
        self._lanes = Lanes()
        self._closing = threading.Event()
        self._notice_new()

    def get(self, model_id: str) -> "LoadedModel":
        """The loaded model, at once.

        Raises NotReady with the state in words, UnknownModel or Refused for an id that cannot be, and the
        error that stopped its download or loading. Starts nothing.
        """
        with self._changed:
            slot = self._find(model_id)
            if slot.model is None:
                raise slot.error or not_ready(slot.status)
            slot.used = next(self._clock)
            return slot.model

    def request(self, model_id: str, revision: str | None = None) -> str:
        """Start fetching and loading unless that is under way or done; a failed model is tried again.

        Returns the id under which the model is known from now on (`org/name@revision` where one was given).
        Raises UnknownModel or Refused.
        """
        source = resolve(model_id, revision, self._settings)
        with self._changed:
            slot = self._slots.setdefault(source.card.id, _first_slot(source))
            if slot.status.state in {"absent", "failed"}:
                slot.source, slot.error, slot.note = source, None, None
                self._set(slot, "waiting for its turn", state="queued", progress=None)
                self._lanes.submit(source.lane, partial(self._bring, slot))
        return source.card.id

    def status(self) -> list[ModelStatus]:
        """The state of every model: built-ins, those below the model roots, and those asked for by id."""
        self._notice_new()
        with self._changed:
            return [slot.status for slot in self._slots.values()]

    def status_of(self, model_id: str) -> ModelStatus:
        """The state of one model. Raises UnknownModel or Refused."""
        with self._changed:
            return self._find(model_id).status

    def changes(self, model_id: str) -> Iterator[ModelStatus]:
        """The state now and after every change, until it is ready or failed; blocks its thread in between.

        The last state is repeated about once a second, so a listener that has gone is noticed. Nothing is
        registered: an iterator that is dropped leaves no trace. Raises UnknownModel or Refused.
        """
        status = self.status_of(model_id)
        yield status
        while not status.settled:
            status = self._next_status(model_id, status)
            yield status

    async def follow(self, model_id: str) -> AsyncIterator[ModelStatus]:
        """`changes` for an event loop: holds no thread while it waits, so any number may follow."""
        status = self.status_of(model_id)
        yield status
        while not status.settled:
            await asyncio.sleep(FOLLOW_SECONDS)
            if (latest := self.status_of(model_id)) != status:
                status = latest
                yield status

    def close(self) -> None:
        """Stop downloads that are under way and take no more work; loaded models stay usable."""
        self._closing.set()
        self._lanes.close()

    def _find(self, model_id: str) -> _Slot:
        slot = self._slots.get(model_id)
        if slot is not None:
            return slot
        # Not kept: only a request makes room for an id, or a stranger could fill the list.
        source = resolve(model_id, None, self._settings)
        return _first_slot(source)

    def _next_status(self, model_id: str, seen: ModelStatus) -> ModelStatus:
        with self._changed:
            self._changed.wait_for(lambda: self._find(model_id).status != seen, HEARTBEAT_SECONDS)
            return self._find(model_id).status

    def _notice_new(self) -> None:
        sources = list(catalogue(self._settings))
        with self._changed:
            for source in sources:
                self._slots.setdefault(source.card.id, _first_slot(source))

    def _bring(self, slot: _Slot) -> None:
        with self._failures(slot, None):
            present = slot.source.present() or self._fetch(slot)
            self._lanes.submit(LOADING_LANE, partial(self._load_into, slot, present))

    def _fetch(self, slot: _Slot) -> Present:
        self._set(slot, "fetching", state="fetching", progress=0.0)

        def progress(done: int, total: int) -> None:
            if self._closing.is_set():
                raise _Closing
            share = round(done / total, 3) if total else None
            self._set(slot, f"fetching {done / 1e6:.0f} of {megabytes(total)}", progress=share)

        def tell(sentence: str) -> None:
            slot.note = sentence
            self._set(slot, "fetching")

        return slot.source.fetch(Listener(progress, tell))

    def _load_into(self, slot: _Slot, present: Present) -> None:
        with self._failures(slot, present.path):
            facts = {"revision": present.revision, "size": present.size}
            if present.licence is not None:
                facts["licence"] = present.licence
            self._set(slot, "loading", state="loading", progress=None, **facts)
            self._make_room(slot, present.size, self._settings.device)
            model = self._load(present.path)
            self._make_room(slot, model.bytes, str(model.device))
            with self._changed:
                slot.model, slot.used = model, next(self._clock)
                self._set(slot, None, state="ready", **_frozen(model.describe()))

    def _make_room(self, newcomer: _Slot, needed: int, device: str) -> None:
        """Drop the least recently used models; runs that use them keep them alive until they end."""
        budget = self._settings.model_bytes or memory.model_budget(device)
        if budget is None:
            return
        if needed > budget:
            raise OverBudget(
                f"{newcomer.status.id} takes {megabytes(needed)} of memory and this server keeps at most"
                f" {megabytes(budget)} of models; choose a smaller one or raise ATLAS_MODEL_BYTES.",
                needed=needed,
                budget=budget,
            )
        with self._changed:
            loaded = [
                (slot.used, slot, slot.model) for slot in self._slots.values() if slot.model is not None
            ]
            taken = needed + sum(model.bytes for _, _, model in loaded)
            for _, slot, model in sorted(loaded, key=itemgetter(0)):
                if taken <= budget:
                    break
                taken -= model.bytes
                slot.model, slot.note = None, None
                self._set(
                    slot, "dropped from memory to make room; ask for it to load it again", state="absent"
                )

    @contextlib.contextmanager
    def _failures(self, slot: _Slot, path: Path | None) -> Iterator[None]:
        """Turns whatever is raised into the slot's failure; `path` is where the model's files lie."""
        try:
            yield
        except _Closing:
            self._set(slot, "stopped with the server", state="absent", progress=None)
        except AtlasError as error:
            self._fail(slot, error, path)
        except Exception as error:
            logger.exception("bringing %s failed", slot.status.id)
            reason = f"{type(error).__name__}: {error}"
            detail = f"{slot.status.id} could not be loaded ({reason}); see the server's log."
            self._fail(slot, AtlasError(detail), path)

    def _fail(self, slot: _Slot, error: AtlasError, path: Path | None) -> None:
        told = self._without_folders(error.detail, slot.status.id, path)
        if told != error.detail:
            logger.warning("%s failed: %s", slot.status.id, error.detail)
            error = type(error)(told, **error.extra)
        with self._changed:
            slot.error, slot.note = error, None
            self._set(slot, error.detail, state="failed", progress=None)

    def _without_folders(self, detail: str, model_id: str, path: Path | None) -> str:
        """What everybody may read of a failure: where the files lie is the owner's business."""
        if path is not None:
            folder = path if path.is_dir() else path.parent
            for place in dict.fromkeys((str(folder), str(folder.resolve()))):
                detail = detail.replace(f"{place}/", "").replace(place, model_id)
        return detail.replace(str(self._settings.cache_dir), "the model cache")

    def _set(self, slot: _Slot, words: str | None, **changes: Any) -> None:
        message = "; ".join(part for part in (words, slot.note) if part) or None
        with self._changed:
            changed = dataclasses.replace(slot.status, message=message, **changes)
            if changed != slot.status:
                slot.status = changed
                self._changed.notify_all()


def _first_slot(source: ModelSource) -> _Slot:
    """A model that nobody has asked for; failed where one can see already that it cannot be read."""
    problem = source.card.problem
    return _Slot(
        source, first_status(source.card), error=None if problem is None else CheckpointError(problem)
    )


def _frozen(facts: dict[str, object]) -> dict[str, object]:
    return {name: tuple(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}
