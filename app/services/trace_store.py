"""Keeps the traces of recent requests; the least recently used go when their bytes exceed the budget."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from model.errors import TraceGone
from model.loading import LoadedModel
from model.trace import Trace


@dataclass(frozen=True)
class Entry:
    """A trace with the model that made it; `tokens` and `source_tokens` are what its positions stand for."""

    id: str
    model_id: str
    loaded: LoadedModel
    trace: Trace
    tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    ms: float


class TraceStore:
    """Traces by id, at most `budget` bytes of them. Safe for threads."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, trace_id: str) -> Entry | None:
        """The entry, now the most recently used, or None."""
        with self._lock:
            if trace_id in self._entries:
                self._entries.move_to_end(trace_id)
            return self._entries.get(trace_id)

    def get(self, trace_id: str) -> Entry:
        """The entry. Raises TraceGone where it was evicted or never was."""
        entry = self.find(trace_id)
        if entry is None:
            raise TraceGone("This server no longer holds that trace: run the text again.", id=trace_id)
        return entry

    def add(self, entry: Entry) -> None:
        """Keeps the entry, dropping the least recently used ones that no longer fit beside it."""
        with self._lock:
            replaced = self._entries.pop(entry.id, None)
            self._bytes += entry.trace.nbytes - (replaced.trace.nbytes if replaced else 0)
            self._entries[entry.id] = entry
            while self._bytes > self.budget and len(self._entries) > 1:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= dropped.trace.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._bytes
