"""Prepares a checkout: `python scripts/setup run|test|lint|bench`, using the standard library only.

All it makes lies in the virtual environment (default .venv) and node_modules; a second call finds it there.
"""

import os
import shutil
import subprocess
import sys

# Until the version is known to be right, this file must be readable by any Python 3.
NEEDED = (3, 11)
NEWER_NAMES = ("python3.14", "python3.13", "python3.12", "python3.11")


def _is_new_enough(command: str) -> bool:
    probe = "import sys; sys.exit(sys.version_info < {!r})".format(NEEDED)
    return subprocess.call([command, "-c", probe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def _run_with_newer_python() -> None:
    """Starts this program again under a Python that is new enough, or says that there is none."""
    if "PYTHON" not in os.environ:
        for name in NEWER_NAMES:
            command = shutil.which(name)
            if command and _is_new_enough(command):
                os.execv(command, [command] + sys.argv)
    sys.exit(
        "setup: Python {}.{} or newer is needed and {} is {}.{}: install one, or name it: "
        "make run PYTHON=/path/to/python3".format(*(NEEDED + (sys.executable,) + tuple(sys.version_info[:2])))
    )


if __name__ == "__main__":
    if sys.version_info < NEEDED:
        _run_with_newer_python()
    from steps import main

    sys.exit(main(sys.argv[1:]))
