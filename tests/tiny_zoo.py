"""A tiny built-in model for tests: its wheel, its zoo entry, and stand-ins for pip that misbehave."""

import base64
import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

from model.fetching import PinnedFile
from model.hub_source import HubSource
from model.pip_source import WheelSource
from model.zoo import ZooEntry

INNER = {"config.json": b'{"model_type": "tiny"}', "model.safetensors": bytes(range(256)) * 2000}
FOLDER = "tiny_model/weights"
COMMIT = "c0ffee" * 6 + "c0ff"
REPO = "tiny-lab/tiny-model"

Command = Callable[[str, Path], list[str]]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make_wheel(folder: Path) -> Path:
    """A wheel that pip accepts, with the files of INNER inside."""
    folder.mkdir(parents=True, exist_ok=True)
    info = "tiny_model-1.0.dist-info"
    members = {f"{FOLDER}/{name}": content for name, content in INNER.items()}
    members[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
    members[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(
        f"{name},sha256={_urlsafe(content)},{len(content)}\n" for name, content in members.items()
    )
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return wheel


def make_entry(wheel: Path, *, hub: bool = False) -> ZooEntry:
    """The entry that pins this wheel, with the Hub as second source if asked."""
    members = {name: f"{FOLDER}/{name}" for name in INNER}
    checksum = sha256(wheel.read_bytes())
    sources: list[WheelSource | HubSource] = [
        WheelSource("tiny-model", "1.0", "MIT", wheel.stat().st_size, checksum, members)
    ]
    if hub:
        sources.append(HubSource(REPO, COMMIT, "MIT", {name: name for name in INNER}))
    files = tuple(PinnedFile(name, len(content), sha256(content)) for name, content in INNER.items())
    return ZooEntry("tiny", "Tiny", "bert", "MIT", ("One sentence.",), files, tuple(sources))


def fake_pip(folder: Path, body: str) -> Command:
    """A pip whose `download` runs `body`, which sees `requirement`, `target` and `growing` (its TMPDIR)."""
    script = folder / "fake_pip.py"
    head = """
        import os, pathlib, shutil, sys, time
        requirement, target = sys.argv[1], pathlib.Path(sys.argv[2])
        growing = pathlib.Path(os.environ["TMPDIR"])
        parent = os.getppid()
        def wait_for(path):
            while not pathlib.Path(path).exists():
                time.sleep(0.01)
                if os.getppid() != parent:
                    sys.exit("orphaned")
    """
    script.write_text(dedent(head) + dedent(body))
    return lambda requirement, target: [sys.executable, str(script), requirement, str(target)]


def serving_pip(folder: Path, wheel: Path) -> Command:
    """A pip that delivers `wheel` and notes each call in `calls`."""
    body = f"""
        with open({str(folder / "calls")!r}, "a") as calls:
            calls.write(requirement + "\\n")
        shutil.copy({str(wheel)!r}, target)
    """
    return fake_pip(folder, body)


def halting_pip(folder: Path, wheel: Path) -> Command:
    """A pip that delivers half of `wheel`, waits for the file `go`, and then finishes."""
    body = f"""
        content = pathlib.Path({str(wheel)!r}).read_bytes()
        part = growing / "pip-unpack-x" / "part.whl"
        part.parent.mkdir()
        part.write_bytes(content[: len(content) // 2])
        wait_for({str(folder / "go")!r})
        part.write_bytes(content)
        shutil.copy({str(wheel)!r}, target)
    """
    return fake_pip(folder, body)


def _urlsafe(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
