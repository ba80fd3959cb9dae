"""Parameters of the labs on blocks: residuals, norms, depth."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from model.labs.parameters.base import ModelName, Parameters, Seed, Text

Layer = Annotated[int, Field(ge=0, le=9999, description="the layer, counted from 0")]
NORM_LABELS: dict[str, JsonValue] = {"none": "no norm", "layer": "LayerNorm", "rms": "RMSNorm"}
NORM_EXTRA: dict[str, JsonValue] = {
    "labels": NORM_LABELS,
    "needs": {"compare": ["residuals", "placement"]},
}
PART_LABELS: dict[str, JsonValue] = {"both": "attention and feed-forward", "ffn": "feed-forward alone"}
SENTENCE = "The cat sat on the mat because it was tired."


class Walk(Parameters):
    """One block of a real model, step by step."""

    model: ModelName = "minilm"
    text: Text = SENTENCE
    layer: Layer = 0
    step: Annotated[int, Field(ge=0, le=7, description="the step whose tensor is drawn, counted from 0")] = 0


class Stream(Parameters):
    """What the sublayers write into the stream of a real model, and what its norms make of it."""

    model: ModelName = "minilm"
    text: Text = SENTENCE
    layer: Annotated[int, Field(ge=0, le=9999, description="the layer whose norms the table shows")] = 0


class Switches(Parameters):
    """A real model with residuals, norms or sublayers left out."""

    model: ModelName = "minilm"
    text: Text = SENTENCE
    leave_out: Annotated[
        Literal["residual", "norm", "sublayer"],
        Field(description="what is left out: the x of x + f(x), the norm, or f altogether"),
    ] = "residual"
    around: Annotated[
        Literal["attention", "ffn", "both"],
        Field(description="of which sublayer", json_schema_extra={"labels": {"ffn": "feed-forward"}}),
    ] = "both"
    where: Annotated[Literal["every layer", "one layer"], Field(description="in which layers")] = (
        "every layer"
    )
    layer: Annotated[
        int,
        Field(
            ge=0,
            le=9999,
            description="the layer, where it is left out in one",
            json_schema_extra={"needs": {"where": ["one layer"]}},
        ),
    ] = 0


class Depth(Parameters):
    """A stack of random blocks: how far activations and gradients carry."""

    compare: Annotated[
        Literal["residuals", "norms", "placement"],
        Field(description="what the lines differ in; everything else is as set here"),
    ] = "residuals"
    depth: Annotated[int, Field(ge=1, le=128, description="blocks, one on the other")] = 64
    residual: Annotated[
        bool,
        Field(
            description="x + f(x) rather than f(x)",
            json_schema_extra={"needs": {"compare": ["norms", "placement"]}},
        ),
    ] = True
    norm: Annotated[
        Literal["none", "layer", "rms"],
        Field(description="no norm, LayerNorm or RMSNorm", json_schema_extra=NORM_EXTRA),
    ] = "layer"
    placement: Annotated[
        Literal["pre", "post"],
        Field(
            description="x + f(norm(x)), or norm(x + f(x)) as in the first Transformer",
            json_schema_extra={"needs": {"compare": ["residuals", "norms"], "norm": ["layer", "rms"]}},
        ),
    ] = "pre"
    parts: Annotated[
        Literal["both", "ffn"],
        Field(
            description="attention and feed-forward, or feed-forward alone: theory knows it",
            json_schema_extra={"labels": PART_LABELS},
        ),
    ] = "both"
    init: Annotated[
        Literal["xavier", "he"],
        Field(
            description="variance of weights: 2/(in + out); or 1/in, 2/in after a ReLU, which keeps the scale"
        ),
    ] = "xavier"
    width: Annotated[int, Field(ge=16, le=128, multiple_of=8, description="width of the stream")] = 64
    repeats: Annotated[
        int, Field(ge=1, le=5, description="stacks drawn; lines are their median, bands all of them")
    ] = 1
    seed: Seed = 0
