"""Running a lab for somebody: one at a time, with its progress, until they leave."""

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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


@dataclass
class Labs:
    """Labs take turns: they would only disturb each other's clocks."""

    find: Callable[[str], LoadedModel]
    device: str = "cpu"
    _slots: Slots = field(default_factory=lambda: Slots(running=1, waiting=LABS_WAITING))
    _findings: WeakKeyDictionary[Transformer, dict[str, object]] = field(default_factory=WeakKeyDictionary)

    def run(self, lab: Lab, parameters: Parameters) -> dict[str, object]:
        """The whole answer. Raises Busy and what the lab raises."""
        with self._slots.take():
            return answer(
                lab,
                parameters,
                lab.run(parameters, Bench(self.find, device=self.device, findings=self._findings)),
            )

    def follow(self, lab: Lab, parameters: Parameters, left: threading.Event) -> Iterator[dict[str, object]]:
        """Progress as it comes, the answer last. `left` stops the lab. Raises Busy and what it raises.

        Where it has to wait for another lab, the first event says so.
        """
        told = _Told(lab, parameters, left)

        def work() -> None:
            try:
                with self._slots.take(told.waiting):
                    result = lab.run(parameters, Bench(self.find, told.report, self.device, self._findings))
                told.report(1.0, "done", result)
            except Cancelled:
                pass
            except BaseException as error:  # noqa: BLE001 -- handed to whoever waits
                told.events.put(error)
            told.events.put(None)

        threading.Thread(target=work, name=f"lab {lab.name}", daemon=True).start()
        while (event := told.events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event


class _Told:
    """What a lab in its thread tells whoever follows it; raises Cancelled there once they have left."""

    def __init__(self, lab: Lab, parameters: Parameters, left: threading.Event) -> None:
        self._lab, self._parameters, self._left = lab, parameters, left
        self._waited = False
        self.events: queue.SimpleQueue[dict[str, object] | BaseException | None] = queue.SimpleQueue()

    def report(self, fraction: float, words: str, so_far: Result | None) -> None:
        """How far the lab is, with what it has found."""
        if self._left.is_set():
            raise Cancelled
        found = None if so_far is None else answer(self._lab, self._parameters, so_far)
        self.events.put({"fraction": fraction, "words": words, "result": found})

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
