"""What every test shares: no network, no settings of this machine, and the way to weights and browser."""

import errno
import os
import shutil
import socket
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

# A setting of the person who runs the tests must not change what is tested; these only say where things are.
_KEPT = ("ATLAS_CACHE_DIR", "ATLAS_CHROMIUM", "ATLAS_REQUIRE_MODELS", "ATLAS_REQUIRE_NODE")
for _name in [name for name in os.environ if name.startswith("ATLAS_") and name not in _KEPT]:
    del os.environ[_name]

# No deadline: a shared machine is slow now and then. In CI every run tries the same examples.
hypothesis_settings.register_profile("atlas", deadline=None, derandomize="CI" in os.environ)
hypothesis_settings.load_profile("atlas")


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in ("localhost", "")


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Any:
    """Makes this process a machine without a network: a test that needs one fails on every machine alike."""
    real_connect, real_lookup = socket.socket.connect, socket.getaddrinfo

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_here(address[0]):
            raise OSError(errno.ENETUNREACH, f"tests have no network: {address}")
        real_connect(self, address)

    def lookup(host: Any, *rest: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and not _is_here(name):
            raise socket.gaierror(socket.EAI_AGAIN, f"tests have no network: {name}")
        return real_lookup(host, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        patch.setattr(socket, "getaddrinfo", lookup)
        yield


@pytest.fixture(scope="session")
def weights() -> Callable[[str], Path]:
    """Where a built-in model lies, by id; without it a test is skipped, or failed if models are required."""
    from app.settings import load_settings
    from model import zoo

    def find(model_id: str) -> Path:
        found = zoo.local(zoo.entries()[model_id], load_settings().cache_dir)
        if found is None:
            give_up = pytest.fail if os.environ.get("ATLAS_REQUIRE_MODELS") == "1" else pytest.skip
            give_up(f"the weights of {model_id} are not here: attention-atlas models fetch {model_id}")
        return found

    return find


@pytest.fixture(scope="session")
def chromium() -> dict[str, Any]:
    """Keywords of Playwright's `launch` for the browser that `make test` wrote down."""
    note = Path(sys.prefix) / "chromium-path"
    written = note.read_text(encoding="utf-8").strip() if note.exists() else None
    path = os.environ.get("ATLAS_CHROMIUM") or written or shutil.which("chromium")
    if path is None:
        pytest.fail("no browser is known: run the tests with make test, or name one with ATLAS_CHROMIUM")
    # Chromium refuses to sandbox for root; its own background connections are no part of a test.
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    quiet = [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]
    return {"executable_path": path, "args": ["--disable-gpu", *quiet, *as_root]}
