"""Which preparation each make target needs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import browser
import node
import weights
from console import SetupError
from environment import Environment

_ROOT = Path(__file__).resolve().parents[2]
_EXTRAS = {"run": (), "test": ("test",), "lint": ("test",), "bench": ("bench",)}


def main(arguments: Sequence[str]) -> int:
    """Prepares the checkout for one target; returns the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/setup", description="Prepares this checkout.")
    parser.add_argument("target", choices=_EXTRAS)
    parser.add_argument(
        "--venv", type=Path, default=_ROOT / ".venv", help="where the virtual environment lies"
    )
    chosen = parser.parse_args(arguments)
    try:
        _prepare(chosen.target, Environment(_ROOT, chosen.venv.absolute()))
    except SetupError as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: stopped; the next make goes on from here", file=sys.stderr)
        return 130
    return 0


def _prepare(target: str, environment: Environment) -> None:
    environment.ensure(_EXTRAS[target])
    if target in ("test", "bench"):
        browser.ensure(environment)
        weights.ensure(environment)
    if target == "lint":
        node.ensure(_ROOT)
