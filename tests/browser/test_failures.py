"""The server goes away; a model is not there."""

import json
import subprocess
from typing import Any

import pytest
from playwright.sync_api import Route

from tests.browser.atlas import GONE, REFUSED, Atlas
from tests.browser.conftest import Opener

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def test_a_server_that_stopped_is_said_with_a_retry(
    opened: Opener, mortal_server: tuple[subprocess.Popen[str], str]
) -> None:
    process, address = mortal_server
    atlas = opened(address).open()
    atlas.tolerate(GONE)
    process.kill()
    process.wait()
    atlas.run("A text that nobody will read.")
    assert atlas.state == "error"
    assert "did not answer" in atlas.find("problem").inner_text()
    assert atlas.find("problem").get_by_role("button", name="Retry").is_visible()
    assert atlas.find("text").input_value() == "A text that nobody will read."
    assert atlas.find("tokens").locator("button").count() == 16
    atlas.find("problem").get_by_role("button", name="Retry").click()
    atlas.settled()
    assert atlas.state == "error"


def test_a_trace_that_was_dropped_is_asked_for_again_in_silence(atlas: Atlas) -> None:
    atlas.tolerate(REFUSED)
    gone = {"type": "urn:attention-atlas:trace-gone", "title": "Not Found", "status": 404, "detail": "Gone."}
    dropped: list[str] = []

    def drop_once(route: Route) -> None:
        if dropped:
            return route.fallback()
        dropped.append(route.request.url)
        return route.fulfill(status=404, content_type="application/problem+json", body=json.dumps(gone))

    atlas.page.route("**/attention/encoder.self.5/*", drop_once)
    posts = len([request for request in atlas.asked if request.method == "POST"])
    atlas.find("head-5-3").click()
    atlas.settled()
    assert dropped
    assert atlas.state == "ready"
    assert atlas.picked()[0] == "L5H3"
    assert atlas.find("problem").is_hidden()
    assert len([request for request in atlas.asked if request.method == "POST"]) == posts + 1


# What is known of a model only once it is loaded.
UNKNOWN = dict.fromkeys(
    ("stacks", "layers", "heads", "width", "max_tokens", "readout", "supports", "own_mask", "family"), None
)


def _status(answer: dict[str, Any], **change: Any) -> dict[str, Any]:
    return {**answer, "models": [{**answer["models"][0], **change}, *answer["models"][1:]]}


def test_a_model_on_its_way_has_a_bar_and_the_text_runs_when_it_is_here(opened: Opener, server: str) -> None:
    atlas = opened(server)
    waiting: list[Route] = []

    def not_yet(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(
            response=answer,
            json=_status(
                answer.json(), **UNKNOWN, state="fetching", progress=0.43, message="fetching 36 of 84 MB"
            ),
        )

    atlas.page.route("**/api/models", not_yet)
    atlas.page.route("**/api/models/load", lambda route: waiting.append(route))  # noqa: PLW0108
    with atlas.page.expect_request("**/api/models/load"):
        atlas.page.goto(server)
    note = atlas.find("model-state")
    note.get_by_text("fetching 36 of 84 MB").wait_for()
    assert note.locator("progress").get_attribute("value") == "0.43"
    assert atlas.state == "busy"
    atlas.find("text").fill("Typed while waiting.")
    atlas.page.unroute("**/api/models", not_yet)
    waiting[0].continue_()
    atlas.settled()
    assert atlas.state == "ready"
    assert "looks most at" in atlas.sentence


def test_a_model_that_failed_says_why_and_offers_a_retry(opened: Opener, server: str) -> None:
    atlas = opened(server)
    why = "the package index did not answer"
    events: list[dict[str, Any]] = []

    def failed(route: Route) -> None:
        answer = route.fetch()
        body = _status(answer.json(), **UNKNOWN, state="failed", progress=None, message=why)
        events.append(body["models"][0])
        route.fulfill(response=answer, json=body)

    def fails(route: Route) -> None:
        route.fulfill(content_type="text/event-stream", body=f"data: {json.dumps(events[-1])}\n\n")

    atlas.page.route("**/api/models", failed)
    atlas.page.route("**/api/models/load", fails)
    atlas.open()
    assert atlas.state == "error"
    assert why in atlas.find("problem").inner_text()
    assert why in atlas.find("model-state").inner_text()
    atlas.page.unroute("**/api/models/load", fails)
    atlas.find("model-state").get_by_role("button", name="Retry").click()
    atlas.settled()
    assert atlas.state == "ready"
