"""Build hook: a wheel has no checkout around it, so the page's files go inside the `app` package."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelAssets(BuildHookInterface[Any]):
    """Adds static/ and templates/ to a wheel; an editable install reads them in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it writes the wheel."""
        if version == "standard":
            build_data["force_include"].update({"static": "app/static", "templates": "app/templates"})
