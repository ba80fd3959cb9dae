"""A bench whose models are the built-in ones, each loaded once for all tests of labs."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from app.services.start import load
from app.settings import load_settings
from model.labs.bench import Bench


@pytest.fixture(scope="session")
def real_bench(weights: Callable[[str], Path]) -> Bench:
    return Bench(cache(lambda model_id: load(weights(model_id), load_settings())))
