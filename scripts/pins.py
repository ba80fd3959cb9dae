"""Writes constraints.txt anew: the newest packages that pyproject.toml admits, resolved together.

torch keeps its version unless another is given (`python scripts/pins.py torch==X.Y.Z`): what the numbers are
computed with changes on purpose, never by the way.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PINS = _ROOT / "constraints.txt"
_HEADER = """\
# Every package the project installs, as resolved together on Python {python}. Written by `make pins`.
# Builds differ by machine (torch for the CPU or for CUDA), versions do not; torch pins its CUDA libraries.
"""
_BY_MACHINE = re.compile(r"(nvidia|cuda|triton|intel|mkl|tbb)\b")


def _requirements() -> list[str]:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["project"]["optional-dependencies"].values()
    return [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(requirement for group in groups for requirement in group),
    ]


def _torch_as_it_is() -> str:
    pinned = re.search(r"^torch==\S+$", _PINS.read_text(encoding="utf-8"), re.MULTILINE)
    if pinned is None:
        sys.exit(
            "pins: constraints.txt names no torch: give its version, as in scripts/pins.py torch==2.13.0"
        )
    return pinned[0]


def _resolve(held: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        pip = [str(Path(scratch) / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--upgrade", "pip"], check=True)
        subprocess.run([*pip, "install", "--quiet", *held, *_requirements()], check=True)
        frozen = subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True, text=True).stdout
    return [line.partition("+")[0] for line in frozen.splitlines() if not _BY_MACHINE.match(line)]


def main(held: list[str]) -> None:
    """Resolves with these requirements held and replaces constraints.txt."""
    pins = _resolve(held or [_torch_as_it_is()])
    header = _HEADER.format(python="{}.{}".format(*sys.version_info))
    _PINS.write_text(header + "\n".join(sorted(pins, key=str.lower)) + "\n", encoding="utf-8")
    print(f"pins: {len(pins)} packages written to {_PINS.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
