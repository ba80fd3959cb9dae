"""Parameters of the labs on the feed-forward layer."""

from typing import Annotated, Literal

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Seed, Text

Layer = Annotated[int, Field(ge=0, le=9999, description="the layer, counted from 0")]


class Activations(Parameters):
    """The non-linearities of feed-forward layers, and their derivatives."""

    at: Annotated[float, Field(ge=-10, le=10, description="the input x that the table is about")] = -1.0
    reach: Annotated[float, Field(ge=0.5, le=10, description="curves run from −reach to reach")] = 4.0


class Forms(Parameters):
    """Feed-forward layers of three forms with equally many parameters."""

    width: Annotated[int, Field(ge=8, le=256, description="width D of the stream")] = 64
    expansion: Annotated[
        float, Field(ge=0.5, le=8, description="hidden width of the forms without a gate, in units of D")
    ] = 4.0
    steps: Annotated[int, Field(ge=0, le=600, description="steps of training on the same task")] = 200
    seed: Seed = 0


class Neurons(Parameters):
    """One token in one feed-forward layer of a real model: which neurons speak, and what they say."""

    model: ModelName = "smollm2"
    text: Text = "The capital of France is"
    layer: Layer = 24
    token: Annotated[
        int, Field(ge=-512, le=511, description="the token, counted from 0; −1 is the last one")
    ] = -1
    by: Annotated[
        Literal["what they write", "the prediction"],
        Field(description="what puts a neuron first: how much it writes, or what it adds to the prediction"),
    ] = "what they write"
    top: Annotated[int, Field(ge=1, le=30, description="neurons in the table")] = 8


class Facts(Parameters):
    """Where a model's answer enters its stream."""

    model: Annotated[ModelName, Field(json_schema_extra={"takes": ["one stack", "logits"]})] = "smollm2"
    prompt: Text = "The capital of France is"
    answer: Annotated[
        str, Field(min_length=1, max_length=200, description="the answer whose first token is followed")
    ] = "Paris"
