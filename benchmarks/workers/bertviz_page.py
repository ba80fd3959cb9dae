"""Worker: BertViz's view of every head, from ids to a page on disk."""

from pathlib import Path
from typing import Any

from bertviz import model_view

from benchmarks.calls import answer
from benchmarks.pairs import milliseconds
from benchmarks.workers.models import both


def write(model: str, tokens: int, repetitions: int, file: str) -> dict[str, Any]:
    """Writes the page; milliseconds of each eager forward with weights, and of each making of the page."""
    models = both(model)
    models.use_eager()
    ids = models.ids(tokens)
    labels = [f"token{i}" for i in range(tokens)]
    ran: list[Any] = []

    def run() -> None:
        ran[:] = [models.theirs(ids, attentions=True)]

    def make() -> None:
        view = model_view(ran[0].attentions, labels, html_action="return", display_mode="light")
        Path(file).write_text(view.data, encoding="utf-8")

    run()
    forward = [milliseconds(run) for _ in range(repetitions)]
    page = [milliseconds(make) for _ in range(repetitions)]
    weights = sum(layer.numel() for layer in ran[0].attentions)
    return {"forward": forward, "page": page, "lines": weights, "bytes": Path(file).stat().st_size}


if __name__ == "__main__":
    answer(write)
