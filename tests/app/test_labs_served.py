"""Labs over real connections: who leaves stops theirs, and who comes too many is refused at once."""

import http.client
import json
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import uvicorn

from app.main import create_app
from app.routes.labs import POLL_SECONDS
from app.services.labs import LABS_WAITING
from model.labs import catalogue
from model.labs.bench import Bench
from model.labs.parameters.base import Parameters
from model.labs.result import Result
from tests.serving import settings


@contextmanager
def listening(root: Path) -> Iterator[int]:
    """A server on a port of this machine, in a thread."""
    config = uvicorn.Config(
        create_app(settings(root)), port=0, log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert _until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Makes `recall` count until it is stopped, and `scaling` answer at once; counts the steps."""
    told = {"steps": 0, "ended": 0}

    def forever(_parameters: Parameters, given: Bench) -> Result:
        try:
            while True:
                told["steps"] += 1
                time.sleep(0.01)
                given.report(0.0, "on and on", None)
        finally:
            told["ended"] += 1

    names = {"model.labs.recall": forever, "model.labs.scaling": lambda _parameters, _bench: Result()}
    modules = {name: type("Module", (), {"run": staticmethod(run)}) for name, run in names.items()}
    monkeypatch.setattr(catalogue, "import_module", modules.__getitem__)
    return told


def _until(true: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def _ask(port: int, lab: str, accept: str = "application/json") -> http.client.HTTPConnection:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    asked.request("POST", f"/api/labs/{lab}", "{}", {"Content-Type": "application/json", "Accept": accept})
    return asked


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_closing_the_connection_stops_a_lab_however_it_was_asked_for(
    endless: dict[str, int], tmp_path: Path, accept: str
) -> None:
    with listening(tmp_path) as port:
        asked = _ask(port, "recall", accept)
        assert _until(lambda: endless["steps"] > 0)
        time.sleep(3 * POLL_SECONDS)
        assert endless["ended"] == 0
        asked.close()
        assert _until(lambda: endless["ended"] == 1)


def test_a_full_line_is_refused_over_http_while_a_quick_lab_is_answered(
    endless: dict[str, int], tmp_path: Path
) -> None:
    with listening(tmp_path) as port, ExitStack() as open_until_then:

        def ask(lab: str, accept: str = "application/json") -> http.client.HTTPConnection:
            return open_until_then.enter_context(closing(_ask(port, lab, accept)))

        ask("recall")
        assert _until(lambda: endless["steps"] > 0)
        waiting = [ask("recall") for _ in range(LABS_WAITING)]
        late = [ask("recall"), ask("recall")]
        assert _until(lambda: len(_answered(waiting + late)) == len(late))
        for asked in _answered(waiting + late):
            answer = asked.getresponse()
            assert (answer.status, answer.headers["retry-after"]) == (503, "2")
            assert json.loads(answer.read())["type"] == "urn:attention-atlas:busy"
        assert ask("scaling").getresponse().status == 200
    assert endless["ended"] >= 1


def _answered(asked: list[http.client.HTTPConnection]) -> list[http.client.HTTPConnection]:
    """Those whose answer has begun."""
    ready = select.select([one.sock for one in asked], [], [], 0)[0]
    return [one for one in asked if one.sock in ready]
