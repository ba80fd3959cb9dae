"""Runs `pip install`: tells what is being fetched in short lines, and why it failed in one sentence."""

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from console import Meter, SetupError, say

_DOWNLOAD = re.compile(r"^\s*Downloading (?:\S+/)?(?P<file>\S+) \((?P<size>[\d.]+) (?P<unit>[kMG]B)\)")
_PROGRESS = re.compile(r"^Progress (\d+) of (\d+)\s*$")
_INSTALLING = re.compile(r"^Installing collected packages: (.*)$")
_UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
    r"|CERTIFICATE_VERIFY_FAILED|Temporary failure in name resolution"
    r"|Network is unreachable|Connection (?:refused|reset|broken|aborted)"
    r"|Failed to establish a new connection|Max retries exceeded|Could not (?:fetch URL|connect)",
    re.IGNORECASE,
)
_NO_BUILD = re.compile(r"No matching distribution found for (\S+)")
_DISK_FULL = (
    "the disk is full: free up to 8 GB (a build of torch for CUDA; for the CPU 2 GB) and run make again"
)
_NO_INDEX = (
    "the package index could not be reached: check the network and pip's settings, then run make again"
)


def install(python: Path, arguments: Iterable[str], log: Path) -> None:
    """Runs `python -m pip install` with these arguments, everything it says kept in `log`.

    Raises SetupError with the reason when pip fails.
    """
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments]
    if _knows_raw_progress(python):
        command.append("--progress-bar=raw")
    with (
        log.open("a", encoding="utf-8") as kept,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=clean_environment(),
        ) as process,
    ):
        said = _narrate(process, kept.write)
    if process.returncode:
        raise SetupError(f"{_reason(said)} (all that pip said: {log})")


def clean_environment() -> dict[str, str]:
    """The environment without what would make a virtual environment's Python look elsewhere for packages."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    return {**kept, "PIP_USER": "0"}


def _knows_raw_progress(python: Path) -> bool:
    said = subprocess.run(
        [python, "-m", "pip", "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.match(r"pip (\d+)\.(\d+)", said)
    return version is not None and (int(version[1]), int(version[2])) >= (24, 1)


def _narrate(process: "subprocess.Popen[str]", keep: Callable[[str], object]) -> str:
    meter: Meter | None = None
    said: list[str] = []
    for line in process.stdout or ():
        if progress := _PROGRESS.match(line):
            if meter is not None:
                meter.update(int(progress[1]) / max(1, int(progress[2])))
            continue
        said.append(line)
        keep(line)
        meter = _start_meter(line)
    return "".join(said)


def _start_meter(line: str) -> Meter | None:
    if download := _DOWNLOAD.match(line):
        name = download["file"].split("-", maxsplit=1)[0]
        large = download["unit"] == "GB" or (download["unit"] == "MB" and float(download["size"]) >= 10)
        if large:
            say(f"  {name}, {download['size']} {download['unit']}")
            return Meter(name)
    elif installing := _INSTALLING.match(line):
        say(f"  packages to unpack: {installing[1].count(',') + 1}")
    return None


def _reason(said: str) -> str:
    if "No space left on device" in said:
        return _DISK_FULL
    if _UNREACHABLE.search(said):
        return _NO_INDEX
    if missing := _NO_BUILD.search(said):
        here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
        return (
            f"the package index has no {missing[1]} for {here}: try another, as in make run PYTHON=python3.13"
        )
    errors = [line.removeprefix("ERROR:").strip() for line in said.splitlines() if line.startswith("ERROR:")]
    return f"pip could not install the packages: {errors[0] if errors else 'it gave no reason'}"
