"""Chromium for the tests of the page: found, or else installed, and proven to start.

Its path is written to `chromium-path` inside the virtual environment, where the tests read it.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import debian
from console import SetupError, say
from environment import Environment

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_MAC = "/Applications/{0}.app/Contents/MacOS/{0}"
_PLAYWRIGHT_PATH = """\
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright: print(playwright.chromium.executable_path)
"""
_HINT = "install Chromium or Chrome, or name one with ATLAS_CHROMIUM=/path/to/chromium"
# Latin, most other scripts, Chinese/Japanese/Korean, emoji: without them pictures of the page show boxes.
_FONTS = ("fonts-dejavu-core", "fonts-noto-core", "fonts-noto-cjk", "fonts-noto-color-emoji")


def ensure(environment: Environment) -> None:
    """Writes down a Chromium that starts; installs one when there is none.

    Raises SetupError when none can be had.
    """
    note = environment.folder / "chromium-path"
    known = note.read_text(encoding="utf-8").strip() if note.exists() else ""
    asked = os.environ.get("ATLAS_CHROMIUM")
    if known and os.access(known, os.X_OK) and asked in (None, "", known):
        return
    found = _named(asked) if asked else _first_that_starts(environment)
    say(f"browser: {found}")
    _ensure_fonts()
    note.write_text(found + "\n", encoding="utf-8")


def _named(path: str) -> str:
    full = shutil.which(path)
    if full is None or not _starts(full):
        raise SetupError(f"ATLAS_CHROMIUM={path} does not start: {_HINT}")
    return full


def _first_that_starts(environment: Environment) -> str:
    for path in _installed(environment):
        if _starts(path):
            return path
    for attempt in (_install_with_playwright, _install_with_apt):
        fresh = attempt(environment)
        if fresh and _starts(fresh):
            return fresh
    raise SetupError(f"no browser for the tests of the page was found, and none could be installed: {_HINT}")


def _installed(environment: Environment) -> Iterator[str]:
    yield from filter(None, map(shutil.which, _NAMES))
    yield from filter(os.path.exists, map(_MAC.format, ("Chromium", "Google Chrome")))
    if path := _playwright_path(environment):
        yield path


def _playwright_path(environment: Environment) -> str | None:
    command = [str(environment.python), "-c", _PLAYWRIGHT_PATH]
    path = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return path if path and Path(path).exists() else None


def _install_with_playwright(environment: Environment) -> str | None:
    say("no browser found: fetching one with playwright install chromium")
    command = [str(environment.python), "-m", "playwright", "install", "chromium"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        reasons = re.findall(r"^Error: (.*)(?<!caused by)$", done.stdout + done.stderr, re.MULTILINE)
        say(f"  that failed ({reasons[0] if reasons else 'no reason given'})")
        return None
    return _playwright_path(environment)


def _install_with_apt(_: Environment) -> str | None:
    if not debian.can_install():
        return None
    say("installing Debian's chromium with apt-get")
    if problem := debian.install(["chromium"]):
        say(f"  that failed ({problem})")
    return shutil.which("chromium")


def _starts(path: str) -> bool:
    """Whether the browser opens an empty page; as root Chromium needs --no-sandbox."""
    with tempfile.TemporaryDirectory() as profile:
        command = [path, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        command += [*(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={profile}"]
        try:
            done = subprocess.run(
                [*command, "--dump-dom", "about:blank"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=60,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0 and "<html>" in done.stdout


def _ensure_fonts() -> None:
    wanted = debian.missing(_FONTS) if debian.can_install() else []
    if not wanted:
        return
    say("fonts for the test pictures: " + " ".join(wanted))
    if problem := debian.install(wanted):
        say(f"  not installed, some characters will show as boxes ({problem})")
