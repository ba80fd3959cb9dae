"""Parameters of the labs that hold recurrent nets against attention."""

from typing import Annotated

from pydantic import Field

from model.labs.parameters.base import Parameters, Seed

Width = Annotated[
    int, Field(ge=2, le=512, title="width d", description="d, the width of the inputs and of the state")
]

KeepBias = Annotated[
    float,
    Field(
        ge=-10,
        le=10,
        description="added to the gate of LSTM and GRU that keeps the old state, before anything else",
    ),
]


MOST_GAP, MOST_STEPS = 256, 1000


class Recurrence(Parameters):
    """Steps and operations of nets of one layer against the length of the sequence."""

    length: Annotated[int, Field(ge=2, le=1024, title="length n", description="n, the longest sequence")] = (
        256
    )
    width: Width = 64
    seed: Seed = 0


class RecurrenceTime(Parameters):
    """Time of nets of one layer on this device against the length of the sequence."""

    length: Annotated[int, Field(ge=2, le=2048, title="length n", description="n, the longest sequence")] = (
        256
    )
    width: Width = 64
    backward: Annotated[bool, Field(description="time the gradients too, as training needs them")] = False
    rounds: Annotated[int, Field(ge=4, le=200, description="how often each net is timed at each length")] = 15
    seed: Seed = 0


class Gradients(Parameters):
    """How much the output at the end depends on an input that lies a distance before it."""

    distance: Annotated[
        int, Field(ge=1, le=400, description="positions between that input and the output")
    ] = 40
    width: Annotated[int, Field(ge=8, le=64, description="d, the width of the inputs and of the state")] = 32
    gain: Annotated[
        float,
        Field(ge=0.1, le=4, description="what the recurrent weights W_hh are multiplied by at the start"),
    ] = 1.0
    keep_bias: KeepBias = 0.0
    seeds: Annotated[int, Field(ge=1, le=20, description="how many nets of each kind are drawn")] = 5
    seed: Seed = 0


class Recall(Parameters):
    """Nets trained to name a symbol that they saw before a gap of noise."""

    longest_gap: Annotated[
        int, Field(ge=1, le=MOST_GAP, description="the longest gap between symbol and question")
    ] = 64
    symbols: Annotated[int, Field(ge=2, le=32, description="how many symbols there are to tell apart")] = 8
    width: Annotated[int, Field(ge=4, le=64, description="d, the width of embeddings and of the state")] = 32
    steps: Annotated[int, Field(ge=1, le=MOST_STEPS, description="training steps at each gap")] = 80
    keep_bias: KeepBias = 0.0
    seed: Seed = 0


class Paths(Parameters):
    """How many hops information takes from one position to another."""

    length: Annotated[int, Field(ge=2, le=64, description="n, the positions of the sequence")] = 16
    source: Annotated[int, Field(ge=0, le=63, description="the position where the information starts")] = 1
    target: Annotated[int, Field(ge=0, le=63, description="the position that needs it")] = 14
    reach: Annotated[
        int,
        Field(ge=1, le=16, description="how far to each side a window of attention or a convolution sees"),
    ] = 2
