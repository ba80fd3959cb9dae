"""A run as Markdown: a table for each kind of measurement, then the figures to reach."""

from collections.abc import Iterator
from itertools import groupby
from statistics import median

from benchmarks import captions
from benchmarks.results import BertViz, Results
from benchmarks.spreads import line, spread
from benchmarks.tables import size, table, time, with_quartiles
from benchmarks.verdicts import verdicts

_WAYS = {"ours": "trace", "resid": "trace with resid", "eager": "transformers, eager with weights"}


def report(results: Results) -> str:
    """The whole run."""
    return "\n\n".join([_head(results), *_sections(results), *_missing(results)]) + "\n"


def _head(results: Results) -> str:
    where = f"Measured {results.date} ({results.effort}) on {results.machine.words}."
    if not results.busy:
        return where
    busy = f"{median(results.busy):.1f} cores (at most {max(results.busy):.1f})"
    return f"{where} Just before the measurements other programs used {busy}."


def _sections(results: Results) -> Iterator[str]:
    parts = (
        ("Forward and recording", captions.FORWARD, results.forward, _forward),
        ("Memory of a trace", captions.MEMORY, results.memory, _memory),
        ("Paste to picture", captions.PICTURES, results.pictures, _pictures),
        ("Bytes and browser memory", captions.SIZES, results.pictures, _sizes),
        ("Another head, hover", captions.QUICK, results.pictures, _quick),
        ("Opening the page", captions.OPENINGS, results.openings, _openings),
        ("Opening the Learn pages", captions.LESSONS, results.lessons, _lessons),
        ("Cold start", captions.STARTS, results.starts, _starts),
    )
    for title, words, rows, draw in parts:
        if rows:
            yield f"## {title}\n\n{words}\n\n{draw(results)}"
    yield f"## Figures to reach\n\n{_verdicts(results)}"


def _missing(results: Results) -> Iterator[str]:
    stuck = {f"bertviz {row.model} {row.tokens}": row.problem for row in results.bertviz if row.problem}
    found = results.missing | stuck
    if found:
        yield "## Not measured\n\n" + "\n".join(f"- {part}: {why}" for part, why in found.items())


def _forward(results: Results) -> str:
    rows = [
        (
            row.model,
            str(row.tokens),
            f"{median(row.ours):.1f}",
            f"{median(row.fused):.1f}",
            with_quartiles(spread([a / b for a, b in zip(row.ours, row.fused, strict=True)])),
            f"{row.eager:.1f}",
        )
        for row in results.forward
    ]
    return table(("model", "N", "ours", "fused", "ratio", "eager"), rows)


def _memory(results: Results) -> str:
    rows = []
    for (model, way), group in groupby(results.memory, key=lambda row: (row.model, row.way)):
        found = list(group)
        fit = line([row.tokens for row in found], [row.peak for row in found])
        lengths = ", ".join(str(row.tokens) for row in found)
        peaks = ", ".join(f"{row.peak / row.tokens / 1e3:.0f}" for row in found)
        held = ", ".join(f"{row.held / row.tokens / 1e3:.0f}" for row in found)
        line_is = f"{fit.slope / 1e3:.0f}", f"{fit.residual:.1%}"
        rows.append((model, _WAYS[way], lengths, peaks, held, *line_is))
    return table(("model", "run", "N", "peak", "held", "slope", "off the line"), rows)


def _pictures(results: Results) -> str:
    rows = []
    for row in results.pictures:
        ours = median(row.complete)
        times = [time(median(row.forward)), time(median(row.first)), time(ours)]
        rows.append(
            (row.model, str(row.tokens), *times, *_beside(results.bertviz_at(row.model, row.tokens), ours))
        )
    return table(("model", "N", "forward", "first thumbnails", "complete", "BertViz", "BertViz ÷ ours"), rows)


def _beside(theirs: BertViz | None, ours: float) -> tuple[str, str]:
    if theirs is None:
        return "–", "–"
    page, painted = median(theirs.page), median(theirs.painted)
    return f"{time(page)} + {time(painted)}", f"{(page + painted) / ours:.0f} ×"


def _sizes(results: Results) -> str:
    rows = []
    for row in results.pictures:
        theirs = results.bertviz_at(row.model, row.tokens)
        peer = ("–", "–") if theirs is None else (size(theirs.bytes), size(theirs.renderer))
        ours = size(row.wire), size(row.unpacked), size(row.renderer), size(row.renderer_later)
        rows.append((row.model, str(row.tokens), *ours, *peer))
    header = (
        "model",
        "N",
        "on the wire",
        "unpacked",
        "renderer",
        "later",
        "BertViz's page",
        "BertViz's renderer",
    )
    return table(header, rows)


def _quick(results: Results) -> str:
    rows = [
        (
            row.model,
            str(row.tokens),
            with_quartiles(spread(row.choices), 0),
            with_quartiles(spread(row.hovers), 1),
        )
        for row in results.pictures
    ]
    return table(("model", "N", "another head, ms", "hover, ms"), rows)


def _openings(results: Results) -> str:
    rows = [
        (
            cache,
            with_quartiles(spread([getattr(row, cache) for row in results.openings]), 0),
            with_quartiles(spread([getattr(row, f"{cache}_complete") for row in results.openings]), 0),
            size(median(getattr(row, f"{cache}_bytes") for row in results.openings)),
        )
        for cache in ("cold", "warm")
    ]
    return table(("browser cache", "first picture, ms", "with Plotly, ms", "bytes"), rows)


def _lessons(results: Results) -> str:
    rows = []
    for row in results.lessons:
        answers = [answered - asked for asked, answered in zip(row.asked, row.answered, strict=True)]
        paints = [first - answered for answered, first in zip(row.answered, row.first, strict=True)]
        parts = [f"{median(times):.0f}" for times in (row.asked, answers, paints, row.alone)]
        ends = f"{row.newcomer:.0f}", with_quartiles(spread(row.complete), 0)
        first = with_quartiles(spread(row.first), 0)
        rows.append((row.page, row.lab, first, *parts, *ends, size(median(row.wire)), size(row.renderer)))
    header = (
        "page",
        "first lab",
        "first picture, ms",
        "asked",
        "answered",
        "painted",
        "lab alone",
        "first visit",
        "with Plotly, ms",
        "bytes",
        "renderer",
    )
    return table(header, rows)


def _starts(results: Results) -> str:
    starts = results.starts
    rows = [("/healthz", with_quartiles(spread([start.healthz for start in starts])), "–")]
    for model in starts[0].answers:
        together = with_quartiles(spread([start.answers[model] for start in starts]))
        alone = [start.alone[model] for start in starts if model in start.alone]
        rows.append((f"{model}'s first answer", together, with_quartiles(spread(alone)) if alone else "–"))
    return table(("to", "all models loaded, s", "this model alone, s"), rows)


def _verdicts(results: Results) -> str:
    rows = [
        (
            str(verdict.figure),
            verdict.what,
            verdict.wanted,
            verdict.measured,
            "yes" if verdict.reached else "NO",
        )
        for verdict in verdicts(results)
    ]
    return table(("figure", "what", "wanted", "measured", "reached"), rows)
