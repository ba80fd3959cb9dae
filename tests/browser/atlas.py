"""The Explore page as a test drives it: waits on `data-state` and `data-view`, never on time."""

import io
import json
import re
import urllib.request
from typing import Any

import numpy as np
from playwright.sync_api import ConsoleMessage, Locator, Page, Request

SETTLED = "html[data-state=ready], html[data-state=error]"
# Chromium itself writes this for every answer of 400 and more; a test that provokes one says so.
REFUSED = re.compile(r"Failed to load resource: the server responded with a status of (4|5)\d\d")
GONE = re.compile(r"Failed to load resource: net::ERR_")


class Atlas:
    """One page on one server, with everything it said and asked for."""

    def __init__(self, page: Page, server: str) -> None:
        self.page = page
        self.server = server
        self.said: list[str] = []
        self.asked: list[Request] = []
        self.tolerated: list[re.Pattern[str]] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(f"page error: {error}"))
        page.on("request", lambda request: self.asked.append(request))  # noqa: PLW0108  Playwright cannot wrap a built-in

    def _hear(self, message: ConsoleMessage) -> None:
        self.said.append(f"{message.type}: {message.text}")

    def complaints(self) -> list[str]:
        """What the console holds, less what the test announced."""
        return [line for line in self.said if not any(pattern.search(line) for pattern in self.tolerated)]

    def tolerate(self, pattern: re.Pattern[str]) -> None:
        """Announces console lines that the test provokes."""
        self.tolerated.append(pattern)

    def open(self, fragment: str = "") -> "Atlas":
        """Opens the page and waits for its first picture."""
        self.page.goto(self.server + fragment)
        return self.settled()

    def settled(self) -> "Atlas":
        """Waits until nothing is going on."""
        self.page.wait_for_selector(SETTLED, state="attached")
        return self

    def find(self, testid: str) -> Locator:
        """A part of the page."""
        return self.page.get_by_test_id(testid)

    @property
    def state(self) -> str | None:
        """What the page says it is doing."""
        return self.page.locator("html").get_attribute("data-state")

    @property
    def view(self) -> str | None:
        """The hash of what is painted."""
        return self.page.locator("html").get_attribute("data-view")

    @property
    def sentence(self) -> str:
        """The line in words."""
        return self.find("status").inner_text()

    def run(self, text: str) -> "Atlas":
        """Types a text and runs it."""
        self.find("text").fill(text)
        self.find("text").press("Enter")
        return self.settled()

    def mask(self, name: str, suffix: str = "") -> "Atlas":
        """Chooses a mask."""
        self.find(f"mask{suffix}").get_by_text(name, exact=True).click()
        return self.settled()

    def preset(self, part: str) -> "Atlas":
        """Chooses the comparison whose words hold `part`."""
        labels = self.find("presets").locator("option").all_inner_texts()
        self.find("presets").select_option(label=next(label for label in labels if part in label))
        return self.settled()

    def trace(self, model: str = "minilm") -> dict[str, Any]:
        """The last trace that the page opened with a model."""
        request = next(
            request
            for request in reversed(self.asked)
            if request.url.endswith("/api/traces") and json.loads(request.post_data or "{}")["model"] == model
        )
        response = request.response()
        assert response is not None
        return response.json()

    def tensor(self, path: str) -> np.ndarray:
        """A tensor, asked of the server directly."""
        with urllib.request.urlopen(f"{self.server}api/traces/{path}") as answer:
            return np.load(io.BytesIO(answer.read()), allow_pickle=False)

    def picked(self) -> tuple[str, str, str]:
        """Head, query and key as the page names them."""
        title = self.page.locator("[data-column=a] .picture-title").inner_text().split(" ")[0]
        words = self.find("pair").locator("h2 bdi").all_inner_texts()
        return title, words[0], words[1]

    def overflow(self) -> int:
        """Pixels by which the page is wider than the screen."""
        return self.page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
