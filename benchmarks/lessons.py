"""Figure 7: how soon each Learn page shows its first picture, and what it waits for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Playwright, sync_playwright

from app.learn import TOUR
from benchmarks.calls import Failed
from benchmarks.chromium import Traffic, launched, probed, renderer_bytes
from benchmarks.effort import Effort
from benchmarks.pairs import milliseconds
from benchmarks.results import Lesson
from benchmarks.server import Server

LABS = "/api/labs/"


def measure(effort: Effort, server: Server) -> Iterator[Lesson]:
    """Every page of the tour, each time in a fresh browser."""
    with sync_playwright() as playwright:
        for page in TOUR:
            yield _lesson(playwright, server, page.slug, effort.lessons)


@dataclass(frozen=True)
class _Visit:
    """One opening of a page: the probe's clocks, and the first question that it asked."""

    times: dict[str, float]
    lab: str
    body: bytes
    wire: int
    renderer: int


def _lesson(playwright: Playwright, server: Server, slug: str, repetitions: int) -> Lesson:
    newcomer, *visits = (_visit(playwright, server, slug) for _ in range(1 + repetitions))
    return Lesson(
        slug,
        newcomer.lab,
        newcomer=newcomer.times["first"],
        asked=tuple(visit.times["asked"] for visit in visits),
        answered=tuple(visit.times["answered"] for visit in visits),
        first=tuple(visit.times["first"] for visit in visits),
        complete=tuple(visit.times["complete"] for visit in visits),
        alone=tuple(milliseconds(lambda: _ask(server, newcomer)) for _ in range(repetitions)),
        wire=tuple(visit.wire for visit in visits),
        renderer=max(visit.renderer for visit in visits),
    )


def _visit(playwright: Playwright, server: Server, slug: str) -> _Visit:
    visit = _opened(playwright, server, slug)
    # Labs take turns, and others of the closed page may still run: the next visit must not wait for them.
    _ask(server, visit)
    return visit


def _opened(playwright: Playwright, server: Server, slug: str) -> _Visit:
    with launched(playwright) as browser:
        page = probed(browser)
        traffic = Traffic.of(page)
        with page.expect_request(lambda request: LABS in request.url) as asked:
            page.goto(f"{server.address}/learn/{slug}", wait_until="commit")
        times: dict[str, Any] = page.evaluate("bench.lesson()")
        request = asked.value
        lab, body = request.url.rpartition(LABS)[2], request.post_data_buffer or b""
        return _Visit(times, lab, body, traffic.wire, renderer_bytes())


def _ask(server: Server, visit: _Visit) -> None:
    """The page's own question once more, with no browser at work."""
    status = server.post(LABS + visit.lab, visit.body)
    if status != 200:
        raise Failed(f"the lab {visit.lab} answered {status}")
