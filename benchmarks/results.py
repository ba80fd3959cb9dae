"""Everything that one run measured, and nothing that measures."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Machine:
    """Hardware and versions."""

    processor: str
    cores: int
    memory_gb: int
    system: str
    versions: str

    @property
    def words(self) -> str:
        """One sentence."""
        hardware = f"{self.processor}, {self.cores} cores, {self.memory_gb} GB of memory, no GPU used"
        return f"{hardware}; {self.system}, {self.versions}"


@dataclass(frozen=True)
class Forward:
    """Milliseconds at one length, `ours` and `fused` in pairs; `eager` returns attention weights too."""

    model: str
    tokens: int
    ours: tuple[float, ...]
    fused: tuple[float, ...]
    eager: float


@dataclass(frozen=True)
class Memory:
    """Bytes gained by one run: at its peak, while its result is kept, and what the trace says it holds."""

    model: str
    tokens: int
    way: str
    peak: int
    held: int
    stated: int | None


@dataclass(frozen=True)
class Picture:
    """Milliseconds and bytes of each run of a case, and the browser's memory at the end.

    `complete`: paste to all heads, the chosen head and its numbers painted; `first`: to the first thumbnails
    painted; `forward`: the server's part in it. `wire` and `unpacked`: bytes of one run, its later requests
    included. `choices`: another head; `hovers`: moves over the matrix. `renderer`: peak resident bytes after
    the runs, `renderer_later`: after the choices too.
    """

    model: str
    tokens: int
    complete: tuple[float, ...]
    first: tuple[float, ...]
    forward: tuple[float, ...]
    wire: int
    unpacked: int
    renderer: int
    renderer_later: int
    choices: tuple[float, ...]
    hovers: tuple[float, ...]


@dataclass(frozen=True)
class BertViz:
    """Milliseconds of the eager forward, of making the page, and from opening it to painted.

    `bytes` is the page's size, `renderer` the peak of resident bytes. `problem` says why nothing was painted.
    """

    model: str
    tokens: int
    forward: tuple[float, ...]
    page: tuple[float, ...]
    painted: tuple[float, ...]
    bytes: int
    renderer: int
    problem: str | None = None


@dataclass(frozen=True)
class Opening:
    """Milliseconds to overview, matrix and heads that can be chosen, and to everything; bytes on the wire."""

    cold: float
    cold_complete: float
    warm: float
    warm_complete: float
    cold_bytes: int
    warm_bytes: int


@dataclass(frozen=True)
class Lesson:
    """Milliseconds since a Learn page was opened, of each visit, and what its first lab takes.

    `asked`: to the first lab's request; `answered`: to the end of its answer, or to the picture where an
    unfinished answer was drawn; `first`: to the first picture; `complete`: to the same drawn by Plotly.
    `newcomer`: `first` of the first visit since the server was started, which is none of these. `alone`: the
    same request with no browser at work. `wire`: bytes of each visit; `renderer`: peak resident bytes.
    """

    page: str
    lab: str
    newcomer: float
    asked: tuple[float, ...]
    answered: tuple[float, ...]
    first: tuple[float, ...]
    complete: tuple[float, ...]
    alone: tuple[float, ...]
    wire: tuple[int, ...]
    renderer: int


@dataclass(frozen=True)
class Start:
    """Seconds from the start of a process: to /healthz, and to each model's first answer.

    `answers`: of one process that loads the models in this order; `alone`: where it loads no other.
    """

    healthz: float
    answers: dict[str, float]
    alone: dict[str, float]


@dataclass
class Results:
    """Measurements by part. `missing`: why a part has none; `busy`: cores that others used before each."""

    date: str
    effort: str
    machine: Machine
    forward: list[Forward] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    bertviz: list[BertViz] = field(default_factory=list)
    openings: list[Opening] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    busy: list[float] = field(default_factory=list)

    def bertviz_at(self, model: str, tokens: int) -> BertViz | None:
        """BertViz's measurement of a case, where there is one that ended."""
        found = [
            view for view in self.bertviz if (view.model, view.tokens) == (model, tokens) and view.painted
        ]
        return found[0] if found else None
