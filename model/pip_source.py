"""Fetch one pinned wheel with pip, so that the user's mirrors, proxies and certificates are respected."""

import errno
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from model.child import largest_file, run_watched, tail
from model.fetching import Listener, SourceError, sha256_of

RETRYING = "Retrying ("

# Why pip failed in plain words, what to do, and the signs of it in pip's output, which differ by version.
# Order matters: without a network pip also says that it found no version.
REASONS = (
    ("this Python has no pip; install it with `python -m ensurepip`", ("No module named pip",)),
    (
        "the index's certificate was not accepted; set PIP_CERT to your network's certificate",
        ("CERTIFICATE_VERIFY_FAILED", "SSLCertVerificationError", "SSLVerificationError"),
    ),
    (
        "the proxy did not let the request through; check pip's proxy settings",
        ("ProxyError", "ProxyConnectionError"),
    ),
    (
        "there is no connection to the package index; check the network or pip's index and proxy settings",
        (
            "NewConnectionError",
            "NameResolutionError",
            "name resolution",
            "ConnectTimeout",
            "ConnectionFailed",
        ),
    ),
    (
        "pip does not trust the index, which has no https; check pip's index settings",
        ("is not a trusted or secure host",),
    ),
    (
        "the connection broke off; try again",
        ("Connection aborted", "ConnectionReset", "ReadTimeout", "IncompleteRead", "incomplete-download"),
    ),
    # Older versions do not notice a short download and then trip over the wheel.
    ("the connection broke off; try again", (".whl is invalid",)),
    ("the package index asks for a login; check pip's index settings", ("HTTP error 401",)),
    ("the package index refused the request; check pip's index settings", ("HTTP error 403",)),
    ("the package index has a fault of its own; try again later", ("HTTP error 5", "too many 50")),
    ("the file's checksum differs from what the index promised; try again", ("DO NOT MATCH THE HASHES",)),
    (
        "the package index does not have it; check pip's index settings",
        ("No matching distribution", "Could not find a version", "HTTP error 404"),
    ),
)


@dataclass(frozen=True)
class WheelSource:
    """A wheel on the package index, and where in it each file lies (`members`: our name -> path inside)."""

    project: str
    version: str
    licence: str
    bytes: int
    sha256: str
    members: dict[str, str]

    words = "the package index"

    @property
    def requirement(self) -> str:
        """The pinned requirement as pip reads it."""
        return f"{self.project}=={self.version}"


def pip_command(requirement: str, folder: Path) -> list[str]:
    """The command that downloads one wheel into `folder`, installing nothing."""
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    # Without its own cache pip streams into TMPDIR, where we watch the file grow, and nothing stays behind.
    options += ["--no-cache-dir", "--progress-bar", "off", "--dest", str(folder)]
    return [sys.executable, "-m", "pip", "download", *options, requirement]


def download_wheel(source: WheelSource, folder: Path, listener: Listener) -> Path:
    """Download the wheel below `folder` and return its path.

    Raises SourceError with the reason in words, and OSError (ENOSPC) where the disk is full.
    """
    growing, finished = folder / "growing", folder / "wheel"
    growing.mkdir()
    finished.mkdir()
    watch = _Watch(source.bytes, folder, listener)
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(growing))
    status, log = run_watched(
        pip_command(source.requirement, finished), folder, environment=places, watch=watch
    )
    if status != 0:
        raise _failure(status, log)
    listener.progress(source.bytes, source.bytes)
    return _checked(source, finished, log)


class _Watch:
    """Reports the growing file, and says once when pip has to try again."""

    def __init__(self, total: int, folder: Path, listener: Listener) -> None:
        self.total, self.folder, self.listener = total, folder, listener
        self.told = False

    def __call__(self) -> None:
        self.listener.progress(min(largest_file(self.folder), self.total), self.total)
        if not self.told and RETRYING in _read(self.folder / "client.log"):
            self.told = True
            self.listener.tell("the package index does not answer yet, trying again")


def _checked(source: WheelSource, folder: Path, log: str) -> Path:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceError("pip reported success but left no wheel; try again", tail(log))
    if sha256_of(wheels[0]) != source.sha256:
        raise SourceError(
            f"the checksum of {wheels[0].name} differs from the expected one, so it was damaged on the way or"
            " the index serves another file; try again or check pip's index settings",
            tail(log),
        )
    return wheels[0]


def _failure(status: int, log: str) -> SourceError | OSError:
    if "No space left on device" in log or "Errno 28" in log:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for reason, signs in REASONS:
        if any(sign in log for sign in signs):
            return SourceError(reason, tail(log))
    return SourceError(f"pip stopped with exit status {status}; its last lines say why", tail(log))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
