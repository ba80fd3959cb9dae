"""The virtual environment: made once, brought up to date when the pins change, replaced when it is broken."""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import index
from console import SetupError, say
from note import Note, NoteFile

OLDEST_PYTHON = (3, 11)
_PROBE = "import pip, sys; print(*sys.version_info[:2], sys.prefix)"
_VENV_HINT = "on Debian and Ubuntu: apt-get install python3-venv"


@dataclass(frozen=True)
class Environment:
    """The virtual environment in `folder` for the checkout in `root`."""

    root: Path
    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def _note(self) -> NoteFile:
        return NoteFile(self.folder / "atlas-setup.json")

    def ensure(self, extras: Iterable[str]) -> None:
        """Makes the environment hold the project's dependencies and these optional groups of them.

        Raises SetupError when it cannot be made or filled.
        """
        with self._alone():
            if reason := self._why_replace():
                self._remove(reason)
            if not self.folder.exists():
                self._make()
            present = self._note.read()
            groups = {*extras, *(present.extras if present else ())}
            wanted = Note(str(self.root), self._pins(), tuple(sorted(groups)))
            if present != wanted:
                self._fill(wanted, present)

    def _why_replace(self) -> str | None:
        if not self.folder.exists():
            return None
        if not self.folder.is_dir():
            raise SetupError(f"{self.folder} is not a folder: move it away and run make again")
        version = _version_of(self.python, self.folder)
        if version is None:
            return "broken"
        if self._note.unfinished:
            return "half-made"
        note = self._note.read()
        if note and note.root != str(self.root):
            return "made for a checkout in another place"
        if version < OLDEST_PYTHON or ("PYTHON" in os.environ and version != sys.version_info[:2]):
            return "made by Python {}.{}".format(*version)
        return None

    def _remove(self, reason: str) -> None:
        say(f"{self.folder.name} is {reason}: making it anew")
        try:
            shutil.rmtree(self.folder)
        except OSError as error:
            raise SetupError(
                f"{self.folder} is {reason} and cannot be removed ({error}): remove it and run make again"
            ) from error

    def _make(self) -> None:
        if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
            raise SetupError(
                f"{sys.executable} cannot make virtual environments: install its venv module ({_VENV_HINT}) "
                "or name another Python, such as make run PYTHON=python3.12"
            )
        say("virtual environment in {} (Python {}.{}.{})".format(self.folder.name, *sys.version_info))
        self.folder.mkdir(parents=True)
        self._note.write(None)
        command = [sys.executable, "-m", "venv", str(self.folder)]
        made = subprocess.run(
            command, capture_output=True, text=True, check=False, env=index.clean_environment()
        )
        if made.returncode:
            said = " ".join((made.stdout + made.stderr).split()) or "it gave no reason"
            raise SetupError(f"{sys.executable} could not make a virtual environment ({_VENV_HINT}): {said}")

    def _fill(self, wanted: Note, present: Note | None) -> None:
        say("packages as pinned in constraints.txt" + "".join(f", [{extra}]" for extra in wanted.extras))
        self._note.write(None)
        log = self.folder / "setup.log"
        pins = ["-c", str(self.root / "constraints.txt")]
        groups = f"[{','.join(wanted.extras)}]" if wanted.extras else ""
        try:
            # The build backend goes in first: so it too is the pinned one and needs no extra environment.
            index.install(self.python, [*pins, "pip", "hatchling"], log)
            index.install(
                self.python, [*pins, "--no-build-isolation", "--editable", f"{self.root}{groups}"], log
            )
        except SetupError:
            # pip fetches everything before it changes anything: what was there still works.
            self._note.write(present)
            raise
        self._note.write(wanted)

    def _pins(self) -> str:
        digest = hashlib.sha256()
        for name in ("pyproject.toml", "constraints.txt"):
            digest.update((self.root / name).read_bytes())
        return digest.hexdigest()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps two set-ups from filling the same folder at once."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with (self.folder.parent / f"{self.folder.name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another set-up of this checkout")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _version_of(python: Path, folder: Path) -> tuple[int, int] | None:
    """Version of a virtual environment's Python; None when it or its pip does not work."""
    command = [str(python), "-c", _PROBE]
    try:
        probe = subprocess.run(
            command, capture_output=True, text=True, check=False, env=index.clean_environment()
        )
    except OSError:
        return None
    words = probe.stdout.strip().split(" ", maxsplit=2)
    if probe.returncode or Path(words[2]).resolve() != folder.resolve():
        return None
    return int(words[0]), int(words[1])
