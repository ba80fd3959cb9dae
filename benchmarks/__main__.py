"""`python -m benchmarks [parts]`: measures, and prints what it found as Markdown."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Error as BrowserError

from benchmarks import forward, lessons, memory, openings, pictures, starts
from benchmarks.calls import Failed
from benchmarks.document import publish
from benchmarks.effort import DEFAULT, EFFORTS, Effort
from benchmarks.machine import Watch, describe
from benchmarks.peers import bertviz
from benchmarks.report import report
from benchmarks.results import Results
from benchmarks.server import serving
from benchmarks.texts import first_request

DRAWN = ("minilm", "smollm2")


def _served(measure: Callable[..., Iterator[Any]]) -> Callable[[Effort], Iterator[Any]]:
    """A measurement that is handed a server with the models of its pictures in memory."""

    def run(effort: Effort) -> Iterator[Any]:
        with serving(DRAWN) as server:
            for model in DRAWN:
                server.wait(server.open_trace, first_request(model))
            yield from measure(effort, server)

    return run


PARTS: dict[str, Callable[[Effort], Iterator[Any]]] = {
    "forward": forward.measure,
    "memory": memory.measure,
    "starts": starts.measure,
    "openings": _served(openings.measure),
    "lessons": _served(lessons.measure),
    "pictures": _served(pictures.measure),
    "bertviz": bertviz.measure,
}


def main(arguments: list[str]) -> int:
    """Runs the chosen parts; exit status 1 where one could not be measured, whatever the figures are."""
    chosen = _parser().parse_args(arguments)
    effort = EFFORTS[chosen.effort]
    watch = Watch()
    results = Results(f"{datetime.now(UTC):%Y-%m-%d}", effort.name, describe(), busy=watch.busy)
    for part in chosen.parts or PARTS:
        try:
            getattr(results, part).extend(_watched(part, PARTS[part](effort), watch))
        except (Failed, BrowserError) as problem:
            results.missing[part] = str(problem).splitlines()[0]
            _say(f"{part}: {results.missing[part]}")
    print(report(results))
    if chosen.json:
        chosen.json.write_text(json.dumps(asdict(results), indent=1) + "\n", encoding="utf-8")
    if chosen.publish:
        publish(results)
    return 1 if results.missing else 0


def _watched(part: str, measurements: Iterable[Any], watch: Watch) -> Iterator[Any]:
    """The measurements one by one, each begun when the machine is quiet."""
    remaining, start = iter(measurements), time.monotonic()
    while True:
        watch.wait()
        measured = next(remaining, None)
        if measured is None:
            return
        _say(f"{part}: {_name(measured)}, {time.monotonic() - start:.0f} s")
        yield measured


def _name(measured: Any) -> str:
    fields = [field for field in ("page", "model", "tokens", "way") if hasattr(measured, field)]
    return " ".join(str(getattr(measured, field)) for field in fields) or "one more"


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures Attention Atlas beside transformers and BertViz, in one run.",
        epilog=f"Parts: {', '.join(PARTS)}. In a checkout: make bench ARGS='--quick forward'.",
    )
    parser.add_argument("parts", nargs="*", metavar="part", choices=[[], *PARTS], help="default: all")
    degree = parser.add_mutually_exclusive_group()
    degree.add_argument("--quick", dest="effort", action="store_const", const="quick", help="roughly")
    degree.add_argument(
        "--long", dest="effort", action="store_const", const="long", help="with BertViz at 256 tokens: 12 GB"
    )
    parser.set_defaults(effort=DEFAULT.name)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every single measurement there")
    parser.add_argument("--publish", action="store_true", help="also put this run into docs/performance.md")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
