"""Sounds that come along: somebody reading a sentence, with what is said and where it is from."""

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from model.errors import UnknownRecording

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recording:
    """A sound: its FLAC file, the words that are `said`, and its origin."""

    name: str
    file: Path
    said: str
    source: str
    url: str
    licence: str

    def content(self) -> bytes:
        """The FLAC file's bytes."""
        return self.file.read_bytes()

    def as_json(self) -> dict[str, str]:
        """The recording as pages and the API tell of it."""
        return {
            "name": self.name,
            "said": self.said,
            "source": self.source,
            "url": self.url,
            "licence": self.licence,
        }


@functools.cache
def recordings() -> dict[str, Recording]:
    """All by name; the first is the one to begin with."""
    tables = tomllib.loads((_FOLDER / "recordings.toml").read_text("utf-8"))
    return {name: Recording(name, _FOLDER / table.pop("file"), **table) for name, table in tables.items()}


def recording(name: str) -> Recording:
    """Raises UnknownRecording for a name that there is not."""
    known = recordings()
    if name not in known:
        raise UnknownRecording(f"There is no recording {name}: choose one of {', '.join(known)}.")
    return known[name]
