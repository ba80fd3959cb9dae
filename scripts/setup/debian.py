"""Debian's and Ubuntu's packages, for those who may install them without being asked for a password: root."""

import os
import shutil
import subprocess
from collections.abc import Sequence


def can_install() -> bool:
    """Whether this process may install Debian packages."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def missing(packages: Sequence[str]) -> list[str]:
    """Those of these packages that are not installed."""
    return [name for name in packages if not _is_installed(name)]


def install(packages: Sequence[str]) -> str | None:
    """Installs these packages; returns apt's last words when it could not, else None."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    said = ""
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", "--quiet", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            env=environment,
        )
        said = done.stdout
    return (said.strip().splitlines() or ["no reason given"])[-1] if done.returncode else None


def _is_installed(name: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat=${Status}", name]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.endswith(" installed")
