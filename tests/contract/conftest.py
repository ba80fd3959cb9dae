"""The same server as for the tests of the application."""

from tests.app.conftest import client, models

__all__ = ["client", "models"]
