"""What the measurements ran on, in words, and whether it was left alone."""

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from benchmarks.chromium import chromium_path
from benchmarks.results import Machine

PACKAGES = ("torch", "transformers", "bertviz", "plotly")
QUIET_CORES = 0.15
LOOK_SECONDS = 0.3


def describe() -> Machine:
    """The machine that this program runs on."""
    versions = [f"Python {platform.python_version()}", *filter(None, map(_package, PACKAGES)), _browser()]
    return Machine(
        _processor(),
        os.cpu_count() or 1,
        round(psutil.virtual_memory().total / 1e9),
        platform.system(),
        ", ".join(versions),
    )


class Watch:
    """Looks whether others leave the machine alone, and waits for that within the patience of a whole run."""

    def __init__(self, patience: float = 60.0) -> None:
        self._patience = patience
        self.busy: list[float] = []

    def wait(self) -> None:
        """Waits until the machine is quiet or patience is used up; notes the cores that others used then."""
        start = time.monotonic()
        while (busy := _busy_cores()) > QUIET_CORES and time.monotonic() - start < self._patience:
            pass
        self._patience -= time.monotonic() - start
        self.busy.append(busy)


def _busy_cores() -> float:
    """Cores in use while this program itself rests."""
    return psutil.cpu_percent(LOOK_SECONDS) / 100 * (os.cpu_count() or 1)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _package(name: str) -> str | None:
    try:
        return f"{name} {version(name).partition('+')[0]}"
    except PackageNotFoundError:
        return None


def _browser() -> str:
    said = subprocess.run([chromium_path(), "--version"], capture_output=True, text=True, check=False).stdout
    return " ".join(said.split()[:2])
