"""Worker: forward and recording against the fused forward of `transformers`, in pairs."""

from statistics import median
from typing import Any

from benchmarks.calls import answer
from benchmarks.pairs import interleaved, milliseconds
from benchmarks.workers.models import both

EAGER_REPETITIONS = 3


def measure(model: str, sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Milliseconds for each (tokens, pairs): traces, fused forwards, the median of the eager one."""
    models = both(model)
    models.assert_equal()
    rows = []
    for tokens, repetitions in sizes:
        ids = models.ids(tokens)
        pairs = interleaved(
            lambda ids=ids: models.trace(ids), lambda ids=ids: models.theirs(ids), repetitions
        )
        rows.append({"model": model, "tokens": tokens, "ours": pairs.a, "fused": pairs.b})
    models.use_eager()
    for row in rows:
        ids = models.ids(row["tokens"])
        times = [
            milliseconds(lambda ids=ids: models.theirs(ids, attentions=True))
            for _ in range(EAGER_REPETITIONS)
        ]
        row["eager"] = median(times)
    return rows


if __name__ == "__main__":
    answer(measure)
