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
        """Progress as it comes, the answer last. `left` stops the lab. Raises Busy and what it raises."""
        told: queue.SimpleQueue[dict[str, object] | BaseException | None] = queue.SimpleQueue()

        def report(fraction: float, words: str, so_far: Result | None) -> None:
            if left.is_set():
                raise Cancelled
            partial = None if so_far is None else answer(lab, parameters, so_far)
            told.put({"fraction": fraction, "words": words, "result": partial})

        def work() -> None:
            try:
                with self._slots.take():
                    result = lab.run(parameters, Bench(self.find, report, self.device, self._findings))
                told.put({"fraction": 1.0, "words": "done", "result": answer(lab, parameters, result)})
            except Cancelled:
                pass
            except BaseException as error:  # noqa: BLE001 -- handed to whoever waits
                told.put(error)
            told.put(None)

        threading.Thread(target=work, name=f"lab {lab.name}", daemon=True).start()
        while (event := told.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event


def answer(lab: Lab, parameters: Parameters, result: Result) -> dict[str, object]:
    """What every door answers for a lab."""
    return {
        "lab": lab.name,
        "claims": list(lab.claims),
        "parameters": parameters.model_dump(mode="json"),
        **result.as_json(),
    }
