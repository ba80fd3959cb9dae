"""Parameters of the labs about scaled scores."""

from typing import Annotated, Literal

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Seed, Text

Rule = Literal["none", "inv_sqrt", "inv", "own"]
ModelRule = Literal["own", "none", "inv_sqrt", "inv"]

LABELS = {"none": "1 (none)", "inv_sqrt": "1/√d_k", "inv": "1/d_k"}
ChosenRule = Annotated[
    Rule,
    Field(
        description="multiplies scores: 1, 1/√d_k, 1/d_k or `factor`",
        json_schema_extra={"labels": {**LABELS, "own": "own factor"}},
    ),
]
Factor = Annotated[
    float,
    Field(
        ge=0.01,
        le=100,
        description="the factor of rule `own`",
        json_schema_extra={"needs": {"rule": ["own"]}},
    ),
]
HeadWidth = Annotated[int, Field(ge=1, le=65_536, description="the width of a head: the length of q and k")]
Keys = Annotated[int, Field(ge=1, le=512, description="keys that one softmax runs over")]

PASSAGE = (
    "The river had risen in the night. By morning the water stood at the foot of the bank, and the old "
    "bridge, which nobody had mended since the war, began to move. The children who lived on the other side "
    "could not come to school, so the teacher closed it and went home."
)


class Scaling(Parameters):
    """How scores of random queries and keys spread: every component is drawn from N(0, 1)."""

    d_k: HeadWidth = 64
    rule: ChosenRule = "inv_sqrt"
    factor: Factor = 1.0
    samples: Annotated[int, Field(ge=10, le=200_000, description="pairs of q and k that are drawn")] = 20_000
    seed: Seed = 0


class SoftmaxSaturation(Parameters):
    """What softmax makes of the scores of a random query with many random keys, by the width of the head."""

    d_k: HeadWidth = 64
    rule: ChosenRule = "none"
    factor: Factor = 1.0
    keys: Keys = 64
    rows: Annotated[int, Field(ge=10, le=1000, description="queries drawn, one row each")] = 500
    seed: Seed = 0


class SoftmaxGradient(Parameters):
    """The gradient that reaches a random query through its row of attention, by the width of the head."""

    d_k: Annotated[int, Field(ge=1, le=16_384, description="the width of a head: the length of q, k")] = 64
    rule: ChosenRule = "none"
    factor: Factor = 1.0
    keys: Annotated[int, Field(ge=2, le=128, description="keys that one softmax runs over")] = 64
    rows: Annotated[int, Field(ge=100, le=5000, description="queries drawn, one row each")] = 1000
    seed: Seed = 0


class RealScores(Parameters):
    """The scores of a real model's heads on a text, with its own scale or another one."""

    model: ModelName = "minilm"
    text: Text = PASSAGE
    layer: Annotated[int, Field(ge=0, le=9999, description="the layer, from 0")] = 0
    head: Annotated[int, Field(ge=0, le=9999, description="the head, from 0")] = 0
    rule: Annotated[
        ModelRule,
        Field(
            description="the scale: the model's own, 1, 1/√d_k or 1/d_k",
            json_schema_extra={"labels": {**LABELS, "own": "the model's own"}},
        ),
    ] = "own"
    times: Annotated[float, Field(ge=0.01, le=100, description="a factor on the scale: 1 / temperature")] = (
        1.0
    )
