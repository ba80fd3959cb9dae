"""The browser: the one `make test` uses, its renderers' memory, and what a page transfers."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, Playwright

from benchmarks.calls import Failed

PROBE = Path(__file__).with_name("probe.js")
VIEWPORT = {"width": 1280, "height": 900}
QUIET = (
    "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-quic",
)  # fmt: skip


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """A fresh Chromium with an empty profile. Raises Failed where none is known."""
    # Chromium refuses to sandbox for root.
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = playwright.chromium.launch(executable_path=chromium_path(), args=[*QUIET, *as_root])
    try:
        yield browser
    finally:
        browser.close()


def probed(browser: Browser) -> Page:
    """A page in a context of its own, with an empty cache and the probe in it."""
    page = browser.new_page(viewport=VIEWPORT)
    page.add_init_script(path=PROBE)
    return page


def renderer_bytes() -> int:
    """The largest peak of resident memory among the renderers that descend from this process."""
    return max(
        (_peak(process.pid) for process in psutil.Process().children(recursive=True) if _renders(process)),
        default=0,
    )


@dataclass
class Traffic:
    """Bytes that a page received: on the wire with headers, and unpacked."""

    wire: int = 0
    unpacked: int = 0

    @classmethod
    def of(cls, page: Page) -> "Traffic":
        """Counts from now on."""
        traffic = cls()
        session = page.context.new_cdp_session(page)
        session.on("Network.dataReceived", traffic._received)
        session.on("Network.loadingFinished", traffic._finished)
        session.send("Network.enable")
        return traffic

    def _received(self, event: dict[str, Any]) -> None:
        self.unpacked += event["dataLength"]

    def _finished(self, event: dict[str, Any]) -> None:
        self.wire += int(event["encodedDataLength"])


def chromium_path() -> str:
    """The browser that `make bench` found. Raises Failed where none is known."""
    note = Path(sys.prefix) / "chromium-path"
    written = note.read_text(encoding="utf-8").strip() if note.exists() else None
    path = os.environ.get("ATLAS_CHROMIUM") or written or shutil.which("chromium")
    if path is None:
        raise Failed("no browser is known: run make bench, or name one with ATLAS_CHROMIUM")
    return path


def _renders(process: psutil.Process) -> bool:
    try:
        return any(argument.startswith("--type=renderer") for argument in process.cmdline())
    except psutil.Error:
        return False


def _peak(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
