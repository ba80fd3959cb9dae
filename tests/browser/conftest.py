"""A real server, a real Chromium, and a page that may talk to nothing else."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Route, sync_playwright

from tests.browser.atlas import Atlas
from tests.browser.learn import Learn
from tests.browser.paired import ROW_OF, write_paired

ROOT = Path(__file__).parents[2]
MODELS = ("minilm", "smollm2")
Opener = Callable[..., Atlas]


@contextmanager
def _serving(
    models: Sequence[str] = MODELS, *options: str, **settings: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process of its own on a free port, its models loaded."""
    command = [sys.executable, "-c", "from app.cli import main; main()", "serve", "--port", "0", *options]
    environment = {**os.environ, "ATLAS_HUB": "off", "PYTHONUNBUFFERED": "1", **settings}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "http://" in line, f"the server did not say where it is: {line!r}"
            server = "http://" + line.split("http://")[1].split()[0]
            for model in models:
                _load(server, model)
            yield process, server
        finally:
            process.kill()


def _load(server: str, model: str) -> None:
    request = urllib.request.Request(
        f"{server}api/models/load",
        json.dumps({"model": model}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as stream:
        last = stream.read().decode().strip().rsplit("data: ", 1)[-1]
    assert json.loads(last)["state"] == "ready", last


@pytest.fixture(scope="session")
def server(weights: Callable[[str], Path]) -> Iterator[str]:
    """The address of a server with both built-in models."""
    for model in MODELS:
        weights(model)
    with _serving() as (_, address):
        yield address


@pytest.fixture
def mortal_server(weights: Callable[[str], Path]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that a test may kill."""
    for model in MODELS:
        weights(model)
    with _serving() as found:
        yield found


@pytest.fixture(scope="session")
def family_weights(weights: Callable[[str], Path], server: str) -> None:
    """The weights of the other built-in models, loaded by the server."""
    for model in ("rxnmapper", "whisper-tiny.en"):
        weights(model)
        _load(server, model)


@pytest.fixture(scope="session")
def paired_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with tiny encoder–decoder models, and none that would have to be fetched."""
    root = write_paired(tmp_path_factory.mktemp("models"))
    models = [f"local:paired/{name}" for name in ROW_OF]
    empty = str(tmp_path_factory.mktemp("cache"))
    with _serving(models, "--model-root", str(root), ATLAS_PRELOAD=models[0], ATLAS_CACHE_DIR=empty) as (
        _,
        address,
    ):
        yield address


@pytest.fixture(scope="session")
def playwright_() -> Iterator[Playwright]:
    """Playwright, once for all tests."""
    with sync_playwright() as found:
        yield found


@pytest.fixture(scope="session")
def browser(playwright_: Playwright, chromium: dict[str, Any]) -> Iterator[Browser]:
    """One Chromium for all tests; each page has a context of its own."""
    found = playwright_.chromium.launch(**chromium)
    yield found
    found.close()


@pytest.fixture(scope="session")
def desktop(browser: Browser) -> Iterator[BrowserContext]:
    """A person's browser on a desktop, with its cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


@pytest.fixture
def opened(browser: Browser, desktop: BrowserContext) -> Iterator[Opener]:
    """Opens pages: on the desktop, or with options in a browser that knows nothing yet.

    At the end none may have complained or asked anyone but its server.
    """
    contexts: list[BrowserContext] = []
    pages: list[Atlas] = []
    strangers: list[str] = []

    def refuse(route: Route) -> None:
        strangers.append(route.request.url)
        route.abort()

    def open_page(server: str, kind: type[Atlas] = Atlas, **options: Any) -> Atlas:
        context = desktop
        if options:
            context = browser.new_context(**options)
            contexts.append(context)
        page = context.new_page()
        page.route(lambda url: not url.startswith(server), refuse)
        pages.append(kind(page, server))
        return pages[-1]

    yield open_page
    complaints = [line for page in pages for line in page.complaints()]
    for opened_page in pages:
        opened_page.page.close()
    for context in contexts:
        context.close()
    assert strangers == []
    assert complaints == []


@pytest.fixture(scope="module")
def empty(browser: Browser, server: str) -> Iterator[Page]:
    """A page without a lab, in which modules can be tried."""
    page = browser.new_page()
    page.goto(f"{server}docs")
    yield page
    page.close()


@pytest.fixture
def learn(opened: Opener, server: str) -> Learn:
    """A Learn page that has not been opened yet, on a desktop: `learn.visit("scaling")`."""
    return opened(server, kind=Learn)


@pytest.fixture
def atlas(opened: Opener, server: str) -> Atlas:
    """The page as it is after opening, on a desktop."""
    return opened(server).open()
