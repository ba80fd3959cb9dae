"""docs/performance.md: the last published run."""

from benchmarks.calls import ROOT
from benchmarks.report import report
from benchmarks.results import Results

DOCUMENT = ROOT / "docs" / "performance.md"
INTRODUCTION = """\
# Performance

What one run of `make bench` measured, Attention Atlas beside its peers on the same machine. Times drift from
machine to machine and from hour to hour, ratios within a run much less. To repeat it on a quiet machine with
two cores (about a quarter of an hour, or six minutes with `--quick`):

```
make bench                                     # prints the tables below
make bench ARGS="--quick forward memory"       # some parts, roughly
make bench ARGS="lessons"                      # the Learn pages alone
make bench ARGS="--publish"                    # measures and writes this page anew
```
"""


def publish(results: Results) -> None:
    """Replaces the document by this run."""
    DOCUMENT.write_text(f"{INTRODUCTION}\n{report(results)}", encoding="utf-8")
