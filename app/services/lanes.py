"""Named queues of background work, one thread each: work in one lane never waits for another lane."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

CLOSE_SECONDS = 5.0

Work = Callable[[], None]


class Lanes:
    """Starts a lane's thread when it gets its first work. Work must not raise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, SimpleQueue[Work | None]] = {}
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, lane: str, work: Work) -> None:
        """Do `work` after what this lane already has; dropped when the lanes are closed."""
        with self._lock:
            if self._closed:
                return
            if lane not in self._queues:
                self._start(lane)
            self._queues[lane].put(work)

    def close(self) -> None:
        """Take no more work, skip what waits, and give what runs a few seconds to end."""
        with self._lock:
            self._closed = True
            for queue in self._queues.values():
                queue.put(None)
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)

    def _start(self, lane: str) -> None:
        queue: SimpleQueue[Work | None] = SimpleQueue()
        self._queues[lane] = queue
        # A daemon: a stuck client must not keep a stopped server alive.
        thread = threading.Thread(target=self._run, args=(queue,), name=f"models {lane}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, queue: SimpleQueue[Work | None]) -> None:
        while (work := queue.get()) is not None and not self._closed:
            work()
