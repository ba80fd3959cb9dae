"""Our server in a process of its own, as `attention-atlas serve` starts it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from benchmarks.calls import ROOT, Failed

START_SECONDS = 120.0
STOP_SECONDS = 10.0
T = TypeVar("T")
START = "from app.cli import main; main()"


@dataclass(frozen=True)
class Server:
    """A running server; `started` is when its process was, in `time.perf_counter` seconds."""

    address: str
    started: float

    def get(self, path: str) -> int:
        """The status of a GET; 0 where nobody answers."""
        return _status(Request(self.address + path))

    def open_trace(self, request: Mapping[str, object]) -> int:
        """The status of opening a trace."""
        return self.post("/api/traces", json.dumps(request).encode())

    def post(self, path: str, body: bytes) -> int:
        """The status of a POST of JSON; 0 where nobody answers."""
        return _status(Request(self.address + path, data=body, headers={"Content-Type": "application/json"}))

    def wait(self, attempt: Callable[[T], int], argument: T) -> float:
        """Seconds from the start until `attempt` succeeded. Raises Failed where it never does."""
        while attempt(argument) not in (200, 201):
            if time.perf_counter() - self.started > START_SECONDS:
                raise Failed(f"the server did not get ready within {START_SECONDS:.0f} s")
            time.sleep(0.005)
        return time.perf_counter() - self.started


@contextmanager
def serving(models: Sequence[str]) -> Iterator[Server]:
    """A server on a free port, just started, that loads `models` in this order; stopped at the end.

    Raises Failed where it cannot start.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", START, "serve", "--port", "0"],
        cwd=ROOT,
        env=_environment(models),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Server(_address(process), started)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(models: Sequence[str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    return {**own, "ATLAS_PRELOAD": ",".join(models)}


def _is_setting(name: str) -> bool:
    return name.startswith("ATLAS_") and name != "ATLAS_CACHE_DIR"


def _address(process: "subprocess.Popen[str]") -> str:
    said = process.stdout.readline() if process.stdout else ""
    found = [word for word in said.split() if word.startswith("http://")]
    if not found:
        raise Failed(f"the server did not start: it said {said!r}")
    return found[0].rstrip("/")


def _status(request: Request) -> int:
    try:
        with urlopen(request, timeout=60) as response:
            response.read()
            return int(response.status)
    except HTTPError as problem:
        return problem.code
    except (URLError, ConnectionError):
        return 0
