"""What is known of a model right now, as the picker shows it and the API answers it."""

from dataclasses import dataclass
from typing import Literal

from model.errors import NotReady

State = Literal["absent", "queued", "fetching", "loading", "ready", "failed"]
SETTLED: frozenset[State] = frozenset({"ready", "failed"})


@dataclass(frozen=True)
class Card:
    """What is known of a model before its weights are; `problem` says why they cannot be read at all."""

    id: str
    title: str
    builtin: bool
    family: str | None = None
    revision: str | None = None
    licence: str | None = None
    size: int | None = None
    example: str | None = None
    recording: str | None = None
    opens: tuple[int, int] | None = None
    problem: str | None = None


@dataclass(frozen=True)
class ModelStatus:
    """One entry of `GET /api/models`. What only the weights can tell is None until they were loaded once.

    `progress` runs from 0 to 1 while fetching, `size` counts bytes on disk, `width` is D and `max_tokens` the
    number of positions; `example` is a text to begin with, `recording` a sound;
    `opens` is the (layer, head) to look at first where a publication names one; `message` is for the user.
    """

    id: str
    title: str
    builtin: bool
    family: str | None
    revision: str | None
    licence: str | None
    size: int | None
    example: str | None
    recording: str | None
    opens: tuple[int, int] | None
    stacks: tuple[str, ...] | None = None
    layers: int | None = None
    heads: int | None = None
    width: int | None = None
    max_tokens: int | None = None
    readout: str | None = None
    own_mask: str | None = None
    supports: tuple[str, ...] | None = None
    state: State = "absent"
    progress: float | None = None
    message: str | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.state in SETTLED

    @property
    def percent(self) -> str:
        """The progress of a download, such as "43 %"; empty when unknown."""
        return "" if self.progress is None else f"{int(100 * self.progress)} %"

    @property
    def words(self) -> str:
        """The state in a few words, such as "fetching minilm 43 %"."""
        if self.state in {"fetching", "loading"}:
            return f"{self.state} {self.id} {self.percent}".rstrip()
        return f"{self.id} {self.state}"


def first_status(card: Card) -> ModelStatus:
    """The state of a model that nobody has asked for."""
    facts = {name: value for name, value in vars(card).items() if name != "problem"}
    if card.problem is None:
        return ModelStatus(**facts)
    return ModelStatus(**facts, state="failed", message=card.problem)


def not_ready(status: ModelStatus) -> NotReady:
    """The error that says why this model cannot be used now and what to do."""
    sentences = {
        "absent": f"{status.id} is not loaded; ask for it first: POST /api/models/load with this `model`.",
        "queued": f"{status.id} waits for its turn to be fetched; try again in a moment.",
        "fetching": f"{status.id} is being fetched: {status.percent or 'started'}; try again in a moment.",
        "loading": f"{status.id} is being loaded; try again in a moment.",
    }
    facts = {"model": status.id, "state": status.state, "progress": status.progress}
    return NotReady(sentences[status.state], **facts)
