"""BertViz's view of every head in Chromium, without a network."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Error, Page, Playwright, Route, sync_playwright

from benchmarks.calls import Failed, call
from benchmarks.chromium import launched, probed, renderer_bytes
from benchmarks.effort import Case, Effort
from benchmarks.peers.libraries import libraries
from benchmarks.results import BertViz

LIMIT_MS = 180_000
PAGE = "view.html"


def measure(effort: Effort) -> Iterator[BertViz]:
    """Every case of the effort. Raises Failed where the libraries cannot be had."""
    files = libraries()
    with sync_playwright() as playwright:
        for case in effort.bertviz:
            yield _view(playwright, case, files)


def _view(playwright: Playwright, case: Case, files: dict[str, Path]) -> BertViz:
    with TemporaryDirectory() as folder, _served(folder) as address:
        made = call(
            "bertviz_page",
            model=case.model,
            tokens=case.tokens,
            repetitions=case.repetitions,
            file=str(Path(folder) / PAGE),
        )
        times, renderer, problem = [], 0, None
        for _ in range(case.repetitions):
            try:
                time, size = _paint(playwright, f"{address}/{PAGE}", made["lines"], files)
            except Error as error:
                problem = f"not painted within {LIMIT_MS // 1000} s: {error.message.splitlines()[0]}"
                break
            times.append(time)
            renderer = max(renderer, size)
    return BertViz(
        case.model,
        case.tokens,
        tuple(made["forward"]),
        tuple(made["page"]),
        tuple(times),
        made["bytes"],
        renderer,
        problem,
    )


def _paint(playwright: Playwright, address: str, lines: int, files: dict[str, Path]) -> tuple[float, int]:
    with launched(playwright) as browser:
        page: Page = probed(browser)
        page.set_default_timeout(LIMIT_MS)
        page.route("**/cdnjs.cloudflare.com/**", partial(_answer, files))
        page.goto(address, wait_until="commit")
        page.evaluate("count => { bench.lines(count).then((time) => { bench.drawn = time; }); }", lines)
        page.wait_for_function("bench.drawn", polling=100)
        return float(page.evaluate("bench.drawn")), renderer_bytes()


def _answer(files: dict[str, Path], route: Route) -> None:
    name = route.request.url.rpartition("/")[2]
    found = [file for word, file in files.items() if name.startswith(word)]
    if not found:
        raise Failed(f"BertViz asks for {route.request.url}, of which no copy is known")
    route.fulfill(path=found[0], content_type="text/javascript")


@contextmanager
def _served(folder: str) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name it is called by
        """Says nothing."""
