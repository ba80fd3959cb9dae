"""The three libraries that BertViz's page takes from a CDN, as npm brings them by `package-lock.json`."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from benchmarks.calls import Failed

_FOLDER = Path(__file__).resolve().parents[1]
_FILES = {
    "require": "requirejs/require.js",
    "d3": "d3/dist/d3.min.js",
    "jquery": "jquery/dist/jquery.min.js",
}


def libraries() -> dict[str, Path]:
    """The file for each word by which BertViz's addresses are told apart. Raises Failed where npm fails."""
    modules = _FOLDER / "node_modules"
    lock = hashlib.sha256((_FOLDER / "package-lock.json").read_bytes()).hexdigest()
    stamp = modules / ".benchmarks"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != lock:
        _install()
        stamp.write_text(lock, encoding="utf-8")
    return {word: modules / file for word, file in _FILES.items()}


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Failed("BertViz's page needs d3, jQuery and RequireJS, which npm brings: install Node.js")
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts"],
        cwd=_FOLDER,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        reason = reasons[0] if reasons else "it gave no reason"
        raise Failed(f"npm could not install what BertViz's page needs: {reason}")
