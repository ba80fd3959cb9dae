"""The TypeScript compiler, which checks the types in the page's JavaScript; needed for `make lint` alone."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from console import SetupError, say


def ensure(root: Path) -> None:
    """Makes node_modules hold what package-lock.json names; without Node.js says that the check is skipped.

    Raises SetupError when npm fails, or when Node.js is missing though ATLAS_REQUIRE_NODE=1 asks for it.
    """
    lacking = [name for name in ("node", "npm") if shutil.which(name) is None]
    if lacking:
        _skip(lacking[0])
        return
    stamp = root / "node_modules" / ".atlas-setup"
    wanted = hashlib.sha256((root / "package-lock.json").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    say("npm ci (the TypeScript compiler)")
    done = subprocess.run(
        ["npm", "ci"], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        raise SetupError(
            f"npm could not install the TypeScript compiler: {lines[0] if lines else 'it gave no reason'}"
        )
    stamp.write_text(wanted, encoding="utf-8")


def _skip(name: str) -> None:
    if os.environ.get("ATLAS_REQUIRE_NODE") == "1":
        raise SetupError(
            f"{name} is missing and ATLAS_REQUIRE_NODE=1 asks for the JavaScript check: install Node.js"
        )
    say(f"{name} is missing: the types in the JavaScript will not be checked")
