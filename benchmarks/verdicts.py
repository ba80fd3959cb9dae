"""The figures to reach, and whether a run reached them."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.results import Memory, Picture, Results
from benchmarks.spreads import line, spread
from benchmarks.tables import size, time

FORWARD_RATIO = 1.05
BYTES_A_TOKEN = {("minilm", "ours"): 40e3, ("smollm2", "ours"): 130e3, ("smollm2", "resid"): 200e3}
# No size was set for these; their memory must grow in proportion to the length all the same.
LINEAR = (("rxnmapper", "ours"), ("whisper-tiny.en", "ours"))
# Two points always lie on a line.
LEAST_POINTS = 3
# How far from a straight line the peak may lie and still be called linear.
OFF_LINE = 0.05
TWO_FRAMES = 1000 / 60 * 2
SMALLER_THAN_BERTVIZ = 200
RENDERER_BYTES = 400e6
CHOICE_MS = {64: 50.0, 512: 100.0}
HOVER_MS = 16.0
OPEN_COLD_MS, OPEN_WARM_MS = 1000.0, 500.0
LESSON_MS = 1000.0
HEALTHZ_SECONDS = 1.0
START_SECONDS = {"minilm": 3.0, "smollm2": 6.0}
# Our own goals, for a process that loads no other model.
ALONE_SECONDS = {"rxnmapper": 3.0, "whisper-tiny.en": 6.0}


@dataclass(frozen=True)
class Verdict:
    """One figure: what was asked, what was measured, and whether that is enough."""

    figure: int
    what: str
    wanted: str
    measured: str
    reached: bool


def verdicts(results: Results) -> list[Verdict]:
    """Of every figure for which there are measurements."""
    parts = (_forward, _memory, _complete, _transferred, _renderers, _quick, _openings, _starts, _lessons)
    return [verdict for part in parts for verdict in part(results)]


def bound(picture: Picture) -> float:
    """Milliseconds within which a picture should be complete; for the longest text, its first part."""
    forward = median(picture.forward)
    if picture.tokens >= 1024:
        return forward + 1000
    return forward * 1.5 + 300 if picture.tokens >= 512 else 2 * (forward + TWO_FRAMES) + 50


def _forward(results: Results) -> Iterator[Verdict]:
    for row in results.forward:
        ratio = median(a / b for a, b in zip(row.ours, row.fused, strict=True))
        what = f"{row.model} {row.tokens}: forward + recording, against the fused forward"
        yield Verdict(1, what, f"≤ {FORWARD_RATIO} ×", f"{ratio:.3f} ×", ratio <= FORWARD_RATIO)


def _memory(results: Results) -> Iterator[Verdict]:
    for run, limit in BYTES_A_TOKEN.items():
        rows = _memory_of(results, run)
        if len(rows) > 1:
            yield _memory_growth(rows, limit)
    for run in LINEAR:
        rows = _memory_of(results, run)
        if len(rows) >= LEAST_POINTS:
            yield _linear(rows)


def _memory_of(results: Results, run: tuple[str, str]) -> list[Memory]:
    return [row for row in results.memory if (row.model, row.way) == run]


def _linear(rows: list[Memory]) -> Verdict:
    fit = line([row.tokens for row in rows], [row.peak for row in rows])
    measured = f"{fit.residual:.1%} off a line of {size(fit.slope)} a token"
    what = f"{rows[0].model}: peak memory of a trace linear"
    return Verdict(2, what, f"≤ {OFF_LINE:.0%} off a line", measured, fit.residual <= OFF_LINE)


def _memory_growth(rows: list[Memory], limit: float) -> Verdict:
    fit = line([row.tokens for row in rows], [row.peak for row in rows])
    longest = max(rows, key=lambda row: row.tokens)
    a_token = max(fit.slope, longest.peak / longest.tokens)
    resid = " with resid" if longest.way == "resid" else ""
    what = f"{longest.model}: peak memory of a trace{resid} per token, and linear"
    measured = f"{size(a_token)}, {fit.residual:.1%} off a line"
    return Verdict(2, what, f"≤ {size(limit)}", measured, a_token <= limit and fit.residual <= OFF_LINE)


def _complete(results: Results) -> Iterator[Verdict]:
    for row in results.pictures:
        times = row.first if row.tokens >= 1024 else row.complete
        what = "first thumbnails" if row.tokens >= 1024 else "all heads and the chosen one"
        taken, limit = median(times), bound(row)
        yield Verdict(
            3, f"{row.model} {row.tokens}: paste to {what}", f"≤ {time(limit)}", time(taken), taken <= limit
        )


def _transferred(results: Results) -> Iterator[Verdict]:
    for row in results.pictures:
        theirs = results.bertviz_at(row.model, row.tokens)
        if theirs and (row.model, row.tokens) == ("minilm", 128):
            times = theirs.bytes / row.wire
            what = f"{row.model} {row.tokens}: bytes for it, below BertViz's"
            yield Verdict(
                4, what, f"≥ {SMALLER_THAN_BERTVIZ} ×", f"{times:.0f} ×", times >= SMALLER_THAN_BERTVIZ
            )


def _renderers(results: Results) -> Iterator[Verdict]:
    if results.pictures:
        most = max(row.renderer for row in results.pictures)
        yield Verdict(
            4, "renderer memory, the largest", f"≤ {size(RENDERER_BYTES)}", size(most), most <= RENDERER_BYTES
        )


def _quick(results: Results) -> Iterator[Verdict]:
    for row in results.pictures:
        if row.model == "minilm" and row.tokens in CHOICE_MS:
            limit, taken = CHOICE_MS[row.tokens], median(row.choices)
            yield Verdict(
                5, f"{row.model} {row.tokens}: another head", f"≤ {time(limit)}", time(taken), taken <= limit
            )
            moved = spread(row.hovers).median
            yield Verdict(
                5, f"{row.model} {row.tokens}: hover", f"≤ {time(HOVER_MS)}", time(moved), moved <= HOVER_MS
            )


def _openings(results: Results) -> Iterator[Verdict]:
    for name, limit in (("cold", OPEN_COLD_MS), ("warm", OPEN_WARM_MS)):
        if results.openings:
            taken = median(getattr(row, name) for row in results.openings)
            what = f"opened with a {name} browser cache: overview and matrix painted"
            yield Verdict(5, what, f"≤ {time(limit)}", time(taken), taken <= limit)


def _starts(results: Results) -> Iterator[Verdict]:
    starts = results.starts
    if not starts:
        return
    yield _start("/healthz", [row.healthz for row in starts], HEALTHZ_SECONDS)
    for model, limit in START_SECONDS.items():
        yield _start(f"{model}'s first answer", [row.answers[model] for row in starts], limit)
    for model, limit in ALONE_SECONDS.items():
        what = f"{model}'s first answer, no other model loaded (our own goal)"
        yield _start(what, [row.alone[model] for row in starts], limit)


def _start(what: str, seconds: list[float], limit: float) -> Verdict:
    taken = median(seconds)
    return Verdict(6, f"new process to {what}", f"≤ {limit:.0f} s", f"{taken:.2f} s", taken <= limit)


def _lessons(results: Results) -> Iterator[Verdict]:
    for row in results.lessons:
        taken = median(row.first)
        what = f"/learn/{row.page}, opened with a cold browser cache: first picture painted"
        yield Verdict(7, what, f"≤ {time(LESSON_MS)}", time(taken), taken <= LESSON_MS)
