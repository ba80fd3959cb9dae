"""How much is measured: every size and number of repetitions, in three degrees."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Case:
    """One model at one length (of the target, where the model hears), measured so many times."""

    model: str
    tokens: int
    repetitions: int


@dataclass(frozen=True)
class Effort:
    """What one run of the benchmark does."""

    name: str
    forward: tuple[Case, ...]
    memory: tuple[tuple[str, tuple[int, ...]], ...]
    pictures: tuple[Case, ...]
    bertviz: tuple[Case, ...]
    openings: int
    lessons: int
    starts: int


DEFAULT = Effort(
    name="default",
    forward=(
        *(Case("minilm", tokens, pairs) for tokens, pairs in ((16, 60), (64, 40), (256, 30), (512, 20))),
        *(Case("smollm2", tokens, pairs) for tokens, pairs in ((16, 30), (64, 20), (256, 14), (512, 10))),
        *(Case("smollm2", tokens, pairs) for tokens, pairs in ((1024, 8), (2048, 5))),
        *(Case("rxnmapper", tokens, pairs) for tokens, pairs in ((16, 60), (64, 40), (256, 30), (512, 20))),
        *(Case("whisper-tiny.en", tokens, 10) for tokens in (16, 64, 256)),
    ),
    memory=(
        ("minilm", (128, 256, 512)),
        ("smollm2", (256, 512, 1024, 2048)),
        ("rxnmapper", (128, 256, 512)),
        ("whisper-tiny.en", (64, 192, 320, 448)),
    ),
    pictures=(
        *(Case("minilm", tokens, times) for tokens, times in ((64, 9), (128, 9), (512, 7))),
        *(Case("smollm2", tokens, times) for tokens, times in ((64, 9), (2048, 3))),
    ),
    bertviz=(Case("minilm", 64, 3), Case("minilm", 128, 2), Case("smollm2", 64, 2)),
    openings=5,
    lessons=5,
    starts=3,
)

QUICK = replace(
    DEFAULT,
    name="quick",
    forward=tuple(replace(case, repetitions=5) for case in DEFAULT.forward if case.tokens <= 512),
    memory=(
        ("minilm", (256, 512)),
        ("smollm2", (512, 2048)),
        ("rxnmapper", (128, 256, 512)),
        ("whisper-tiny.en", (64, 256, 448)),
    ),
    pictures=tuple(replace(case, repetitions=3 if case.tokens < 2048 else 1) for case in DEFAULT.pictures),
    bertviz=(Case("minilm", 64, 1), Case("minilm", 128, 1)),
    openings=2,
    lessons=2,
    starts=1,
)

LONG = replace(DEFAULT, name="long", bertviz=(*DEFAULT.bertviz, Case("minilm", 256, 1)))

EFFORTS = {effort.name: effort for effort in (DEFAULT, QUICK, LONG)}
