"""Runs a worker in a fresh process, so that what one measurement leaves in memory is not part of the next."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# As the server runs its models: waiting threads do not spin. Nothing is fetched while something is measured.
ENVIRONMENT = {
    "OMP_WAIT_POLICY": "passive",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


class Failed(Exception):
    """A measurement could not be made; the message is one sentence saying why."""


def call(worker: str, environment: Mapping[str, str] | None = None, **arguments: Any) -> Any:
    """The answer of `benchmarks.workers.<worker>` to `arguments`. Raises Failed with its last words."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"benchmarks.workers.{worker}", json.dumps(arguments)],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
        raise Failed(f"{worker} {arguments}: {last[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def answer(worker: Callable[..., Any]) -> None:
    """The worker's end of `call`."""
    print(json.dumps(worker(**json.loads(sys.argv[1]))))
