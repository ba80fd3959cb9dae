"""Run a download client as a child process and watch its files grow.

A child can be stopped at once, takes no memory from the server and brings its own proxies, mirrors and
credentials. The size of the growing file is the one measure of progress that every client's versions share.
"""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

POLL_SECONDS = 0.1
GRACE_SECONDS = 3.0
LOG_LINES = 20


def largest_file(folder: Path) -> int:
    """Bytes of the largest file below `folder`; files that vanish meanwhile count as nothing."""
    return max(_sizes(folder), default=0)


def total_size(folder: Path) -> int:
    """Bytes of all files below `folder`, links not followed."""
    return sum(_sizes(folder))


def tail(log: str) -> str:
    """The last lines of what a child printed."""
    return "\n".join(log.strip().splitlines()[-LOG_LINES:])


def run_watched(
    command: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str],
    watch: Callable[[], None],
) -> tuple[int, str]:
    """Run `command` in `folder`, call `watch` while it runs, and return its exit status and all it printed.

    An exception raised by `watch` stops the child and passes through: that is how a download is cancelled.
    """
    log = folder / "client.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 -- our own commands, no shell
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            status = _wait(process, watch)
        finally:
            _stop(process)
    return status, log.read_text(encoding="utf-8", errors="replace")


def _wait(process: subprocess.Popen[bytes], watch: Callable[[], None]) -> int:
    while True:
        try:
            return process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            watch()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _sizes(folder: Path) -> list[int]:
    sizes = []
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(Path(parent, name).lstat().st_size)
            except FileNotFoundError:
                continue
    return sizes
