"""Running a lab for somebody: with its progress, until they leave, and never too many at once."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from app.services.limits import Slots
from model.labs.bench import Bench, Cancelled
from model.labs.catalogue import Lab
from model.labs.parameters.base import Parameters
from model.labs.result import Result
from model.loading import LoadedModel
from model.transformer import Transformer

LABS_WAITING = 16
WAITING = "waiting for another experiment to end"
DISTURBED = (
    "Another experiment ran at the same time, so these times are longer than they need be: run it again."
)

Event = dict[str, object]
Tell = Callable[[Event | BaseException | None], None]


def _lane() -> Slots:
    return Slots(running=1, waiting=LABS_WAITING, what="experiments")


class _Running:
    """Who runs beside whom."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self._begun = 0

    @contextmanager
    def one(self) -> Iterator[Callable[[], bool]]:
        """A lab that runs; the function says whether another did meanwhile."""
        with self._lock:
            self._now += 1
            self._begun += 1
            beside, begun = self._now > 1, self._begun
        try:
            yield lambda: beside or self._begun != begun
        finally:
            with self._lock:
                self._now -= 1


@dataclass
class Labs:
    """Labs take turns, in two lanes, so that a quick one never waits for a lengthy one."""

    find: Callable[[str], LoadedModel]
    device: str = "cpu"
    _lengthy: Slots = field(default_factory=_lane)
    _quick: Slots = field(default_factory=_lane)
    _running: _Running = field(default_factory=_Running)
    _findings: WeakKeyDictionary[Transformer, dict[str, object]] = field(default_factory=WeakKeyDictionary)

    def run(self, lab: Lab, parameters: Parameters) -> dict[str, object]:
        """The whole answer, here and now. Raises what the lab raises."""
        return answer(lab, parameters, self._found(lab, parameters, Bench(self.find)))

    def start(
        self, lab: Lab, parameters: Parameters, left: threading.Event, tell: Tell, *, progress: bool = True
    ) -> None:
        """Runs a lab in a thread of its own. Raises Busy, before anything begins, where too many wait.

        `tell` is called there with events, the answer's last, or with what was raised; at the end with None.
        Where it has to wait for another lab, the first event says so. Setting `left` stops it. Without
        `progress` the answer alone is told.
        """
        lane = self.lane(lab)
        lane.admit()
        told = _Told(lab, parameters, left, tell, progress=progress)

        def work() -> None:
            try:
                with lane.turn(told.waiting):
                    result = self._found(lab, parameters, Bench(self.find, told.report))
                told.answer(result)
            except Cancelled:
                pass
            except BaseException as error:  # noqa: BLE001 -- handed to whoever waits
                tell(error)
            tell(None)

        threading.Thread(target=work, name=f"lab {lab.name}", daemon=True).start()

    def follow(self, lab: Lab, parameters: Parameters, left: threading.Event) -> Iterator[Event]:
        """What `start` tells, one event after the other. Raises Busy at once, and what the lab raises."""
        events: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        self.start(lab, parameters, left, events.put)
        return _until_the_end(events)

    def lane(self, lab: Lab) -> Slots:
        """Where a lab waits for its turn."""
        return self._lengthy if lab.lengthy else self._quick

    def _found(self, lab: Lab, parameters: Parameters, bench: Bench) -> Result:
        with self._running.one() as disturbed:
            result = lab.run(parameters, replace(bench, device=self.device, findings=self._findings))
            return replace(result, notes=[*result.notes, DISTURBED]) if lab.clocks and disturbed() else result


class _Told:
    """What a lab in its thread tells whoever follows it; raises Cancelled there once they have left."""

    def __init__(
        self, lab: Lab, parameters: Parameters, left: threading.Event, tell: Tell, *, progress: bool
    ) -> None:
        self._lab, self._parameters, self._left, self._tell = lab, parameters, left, tell
        self._progress = progress
        self._waited = False

    def report(self, fraction: float, words: str, so_far: Result | None) -> None:
        """How far the lab is, with what it has found."""
        if self._left.is_set():
            raise Cancelled
        if self._progress:
            found = None if so_far is None else answer(self._lab, self._parameters, so_far)
            self._tell({"fraction": fraction, "words": words, "result": found})

    def answer(self, result: Result) -> None:
        """All it has found."""
        if self._left.is_set():
            raise Cancelled
        found = answer(self._lab, self._parameters, result)
        self._tell({"fraction": 1.0, "words": "done", "result": found})

    def waiting(self) -> None:
        """That another lab has to end first; said once."""
        if self._left.is_set():
            raise Cancelled
        if not self._waited:
            self._waited = True
            self.report(0.0, WAITING, None)


def answer(lab: Lab, parameters: Parameters, result: Result) -> dict[str, object]:
    """What every door answers for a lab."""
    return {
        "lab": lab.name,
        "claims": list(lab.claims),
        "parameters": parameters.model_dump(mode="json"),
        **result.as_json(),
    }


def _until_the_end(events: "queue.SimpleQueue[Event | BaseException | None]") -> Iterator[Event]:
    while (event := events.get()) is not None:
        if isinstance(event, BaseException):
            raise event
        yield event
