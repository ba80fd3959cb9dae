"""What is written inside a virtual environment about what it holds."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Note:
    """The checkout an environment was filled for, the hash of the pins, and the optional groups in it."""

    root: str
    pins: str
    extras: tuple[str, ...]


@dataclass(frozen=True)
class NoteFile:
    """A note on disk: unfinished before a change, whole after it, so that a broken-off change shows."""

    path: Path

    @property
    def unfinished(self) -> bool:
        """Whether a change to the environment was begun and not finished."""
        return self.path.exists() and self.read() is None

    def read(self) -> Note | None:
        """The note; None when there is none or it is unfinished."""
        try:
            fields = json.loads(self.path.read_text(encoding="utf-8"))
            return Note(fields["root"], fields["pins"], tuple(fields["extras"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, note: Note | None) -> None:
        """Replaces the note in one step; None marks the environment as unfinished."""
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(note) if note else {}), encoding="utf-8")
        draft.replace(self.path)
