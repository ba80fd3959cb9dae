"""A Learn page as a test drives it: labs are brought into view, set, and read; nothing waits on time."""

import json
from typing import Any

from playwright.sync_api import Locator

from tests.browser.atlas import Atlas

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


class Learn(Atlas):
    """One Learn page on one server. A lab is named by its section's id, a second one there "id-2"."""

    def visit(self, slug: str, fragment: str = "") -> "Learn":
        """Opens a page of the tour and waits for its first lab."""
        self.page.goto(f"{self.server}learn/{slug}{fragment}")
        self.page.wait_for_selector("html[data-state=ready], html[data-state=error]", state="attached")
        return self

    def lab(self, name: str) -> Locator:
        """A lab, in view and at rest; one that waits to be asked is."""
        found = self.page.get_by_test_id(f"lab-{name}")
        found.scroll_into_view_if_needed()
        if found.get_attribute("data-start") == "asked" and found.get_attribute("data-state") == "idle":
            found.locator(".run-lab").click()
        self._rest(name)
        return found

    def set(self, name: str, **values: object) -> dict[str, Any]:
        """Sets controls of a lab one after another, runs it, and gives its parameters as they ran."""
        lab = self.lab(name)
        for control, value in values.items():
            _enter(lab.locator(f'[data-control="{control}"]'), value)
        # Any lab that lasts has a button, to stop it: one that is not lengthy runs by itself.
        if lab.get_attribute("data-lengthy") == "true":
            lab.locator(".run-lab").click()
        self._rest(name)
        ran: dict[str, Any] = json.loads(lab.get_attribute("data-view") or "{}")
        return ran

    def check(self, name: str, check: str) -> dict[str, Any]:
        """A check's numbers as the page holds them, and whether it holds."""
        row = self.lab(name).locator(f'[data-check="{check}"]')
        numbers = {
            key: json.loads(row.get_attribute(f"data-{key}") or "null") for key in ("measured", "expected")
        }
        return {**numbers, "holds": row.get_attribute("data-holds") == "true", "text": row.inner_text()}

    def checks(self, name: str) -> dict[str, bool]:
        """Every check of a lab that is in view: whether it holds."""
        rows = self.lab(name).locator("[data-check]").all()
        return {
            str(row.get_attribute("data-check")): row.get_attribute("data-holds") == "true" for row in rows
        }

    def fact(self, section: str, path: str) -> str:
        """What a sentence of a section says for a fact."""
        return plain(self.page.locator(f'#{section} [data-fact="{path}"]').first.inner_text())

    def problem(self, name: str) -> str:
        """What a lab says went wrong; empty where nothing did."""
        said = self.lab(name).locator(".lab-problem")
        return said.inner_text() if said.is_visible() else ""

    def charts(self, name: str) -> list[str]:
        """The series that a lab shows, drawn."""
        lab = self.lab(name)
        return [str(chart.get_attribute("data-chart")) for chart in lab.locator(".chart[data-drawn]").all()]

    def _rest(self, name: str) -> None:
        selector = f'[data-testid="lab-{name}"]'
        self.page.wait_for_selector(
            f"{selector}[data-state=ready], {selector}[data-state=error]", state="attached", timeout=60_000
        )


def _enter(control: Locator, value: object) -> None:
    kind = control.evaluate("node => node.type ?? node.tagName")
    if kind == "checkbox":
        control.set_checked(bool(value))
    elif kind == "select-one":
        control.select_option(str(value))
    else:
        control.fill(str(value))
        control.dispatch_event("change")


def plain(text: str) -> str:
    """The text with the spaces of a keyboard: the page has narrow ones, and some that no line breaks at."""
    return text.translate(_SPACES)


_SPACES = {0x00A0: " ", 0x202F: " ", 0x2009: " "}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


_POWERS = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(text: str) -> float:
    """A number as the page writes it: 1,536 or 1.43 · 10⁻¹⁷ or 65.6 %, without the percent."""
    bare = plain(text).replace(",", "").replace("−", "-").replace(" %", "")
    if bare.startswith("10") and bare[2:3] in _POWERS:
        bare = f"1 · {bare}"
    mantissa, _, exponent = bare.partition(" · 10")
    return float(mantissa) * 10.0 ** int(exponent.translate(_RAISED) or "0")
