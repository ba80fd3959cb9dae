"""Figure 5: how soon an opened page shows its first picture, with an empty and a filled browser cache."""

from collections.abc import Iterator

from playwright.sync_api import Page, sync_playwright

from benchmarks.chromium import Traffic, launched, probed
from benchmarks.effort import Effort
from benchmarks.results import Opening
from benchmarks.server import Server


def measure(effort: Effort, server: Server) -> Iterator[Opening]:
    """Opens the page twice in each of some fresh browsers."""
    with sync_playwright() as playwright:
        for _ in range(effort.openings):
            with launched(playwright) as browser:
                page = probed(browser)
                traffic = Traffic.of(page)
                cold = _open(page, server.address, traffic)
                warm = _open(page, server.address, traffic)
                yield Opening(cold[0], cold[1], warm[0], warm[1], cold[2], warm[2])


def _open(page: Page, address: str, traffic: Traffic) -> tuple[float, float, int]:
    before = traffic.wire
    page.goto("about:blank")
    page.goto(address, wait_until="commit")
    first, complete = page.evaluate("Promise.all([bench.opened(), bench.ready()])")
    return first, complete, traffic.wire - before
