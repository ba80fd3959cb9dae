"""Static files: ours, checked for changes at every use, and Plotly's, compressed once and kept for good."""

import gzip
import importlib.metadata
import importlib.util
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

PLOTLY_VERSION = importlib.metadata.version("plotly")
PLOTLY_URL = f"/static/vendor/plotly.min.js?v={PLOTLY_VERSION}"
FOR_GOOD = "public, max-age=31536000, immutable"
GZIP_LEVEL = 9


class OurFiles(StaticFiles):
    """Static files that a browser may keep but asks about: modules import each other without a version."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, or 304 where the browser's copy is the same."""
        answer = super().file_response(*args, **kwargs)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


@cache
def plotly_style_ids() -> tuple[str, ...]:
    """Ids of the style elements that Plotly adds as it loads, which the Content-Security-Policy forbids.

    It adds none where an element with the id is there already, so a page names them. They are hashes of their
    content, and so differ from one version to the next.
    """
    script = (_package_folder("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")
    return tuple(dict.fromkeys(re.findall(r'getElementById\("([0-9a-f]{64})"\)', script)))


class Plotly:
    """plotly.min.js out of the installed Python package, gzipped once into the cache."""

    def __init__(self, cache_dir: Path) -> None:
        self._plain = _package_folder("plotly") / "package_data" / "plotly.min.js"
        self._packed = cache_dir / "assets" / f"plotly-{PLOTLY_VERSION}.min.js.gz"

    def pack(self) -> None:
        """Compresses the file unless that was done; atomically, since several servers may share the cache."""
        if self._packed.exists():
            return
        self._packed.parent.mkdir(parents=True, exist_ok=True)
        half_made = self._packed.with_suffix(f".{os.getpid()}")
        half_made.write_bytes(gzip.compress(self._plain.read_bytes(), GZIP_LEVEL, mtime=0))
        half_made.replace(self._packed)

    def answer(self, request: Request) -> Response:
        """The file, compressed where the browser takes that and the compressed copy is there."""
        packed = "gzip" in request.headers.get("accept-encoding", "") and self._packed.exists()
        answer = FileResponse(self._packed if packed else self._plain, media_type="text/javascript")
        answer.headers["Cache-Control"] = FOR_GOOD
        if packed:
            answer.headers["Content-Encoding"] = "gzip"
            # Where it is not packed, the middleware that may compress it says so.
            answer.headers["Vary"] = "Accept-Encoding"
        return answer


def _package_folder(name: str) -> Path:
    """The folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the package {name} is not installed")
    return Path(spec.origin).parent
