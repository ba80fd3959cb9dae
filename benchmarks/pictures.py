"""Figures 3 and 4, and the quickness of head choice and hover of figure 5: our page in Chromium."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from playwright.sync_api import Page, Playwright, sync_playwright

from benchmarks.calls import Failed
from benchmarks.chromium import Traffic, launched, probed, renderer_bytes
from benchmarks.effort import Case, Effort
from benchmarks.results import Picture
from benchmarks.server import Server
from benchmarks.texts import text_of

HEADS_CHOSEN = 12
MOVES = range(1, 20)
LIMIT_MS = 120_000


def measure(effort: Effort, server: Server) -> Iterator[Picture]:
    """Every case of the effort, each in a fresh browser; the server has both models in memory."""
    with sync_playwright() as playwright:
        for case in effort.pictures:
            yield _picture(playwright, server, case)


def _picture(playwright: Playwright, server: Server, case: Case) -> Picture:
    with launched(playwright) as browser:
        page = probed(browser)
        page.set_default_timeout(LIMIT_MS)
        page.goto(server.address)
        page.evaluate("bench.ready()")
        page.select_option('[data-testid="model"]', case.model)
        page.evaluate("bench.ready()")
        _run(page, case, seed=0)
        traffic = Traffic.of(page)
        runs = [_run(page, case, seed) for seed in range(1, case.repetitions + 1)]
        received = replace(traffic)
        return Picture(
            case.model,
            case.tokens,
            complete=tuple(run["complete"] for run in runs),
            first=tuple(run["first"] for run in runs),
            forward=tuple(run["forward"] for run in runs),
            wire=received.wire // case.repetitions,
            unpacked=received.unpacked // case.repetitions,
            renderer=renderer_bytes(),
            choices=tuple(_choices(page)),
            hovers=tuple(page.evaluate("i => bench.hover(i / 20, (7 * i % 20) / 20)", i) for i in MOVES),
            renderer_later=renderer_bytes(),
        )


def _run(page: Page, case: Case, seed: int) -> dict[str, Any]:
    with page.expect_response(lambda response: response.url.endswith("/api/traces")) as answered:
        text = text_of(case.model, case.tokens, seed)
        times: dict[str, Any] = page.evaluate("text => bench.run(text)", text)
    answer = answered.value.json()
    ran = answer["model"]["id"], answer["sizes"]["tokens"]
    if ran != (case.model, case.tokens):
        raise Failed(f"the page ran {ran} instead of {case}")
    page.wait_for_selector('[data-testid="overview"][data-figures="ready"]')
    return {**times, "forward": answer["ms"]}


def _choices(page: Page) -> list[float]:
    """Heads that were not shown before, so that each has to be fetched."""
    return [page.evaluate("i => bench.choose(i % 6, (5 * i + 1) % 9)", i) for i in range(HEADS_CHOSEN)]
