"""Parameters of the labs on rotary positions."""

from typing import Annotated, Literal

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Seed, Text

Layout = Literal["half-split", "interleaved"]
ScalingMethod = Literal["none", "linear", "llama3"]
Place = Annotated[int, Field(ge=0, le=32_768, description="a position, counted from 0")]


class RopeLab(Parameters):
    """A query and a key of random components, rotated to their positions (Su et al. 2021)."""

    d_k: Annotated[
        int, Field(ge=1, le=256, json_schema_extra={"multipleOf": 2}, description="width of a head, even")
    ] = 64
    base: Annotated[
        float, Field(ge=1, le=1e9, description="plane i turns by base^(-2i/d_k) radians a step")
    ] = 1e4
    m: Annotated[int, Field(ge=0, le=32_768, title="query at m", description="position of the query")] = 20
    n: Annotated[int, Field(ge=0, le=32_768, title="key at n", description="position of the key")] = 12
    length: Annotated[
        int, Field(ge=1, le=32_768, description="the farthest distance and shift that are tried")
    ] = 256
    layout: Annotated[
        Layout, Field(description="which two components make a plane: (i, i + d_k/2), or neighbours")
    ] = "half-split"
    scaling: Annotated[ScalingMethod, Field(description="how a model is stretched to longer texts")] = "none"
    factor: Annotated[float, Field(ge=1, le=1024, description="by how much it is stretched")] = 8.0
    original: Annotated[
        int,
        Field(ge=1, le=1_000_000, description="tokens of the texts it was trained on; llama3 asks for it"),
    ] = 8192
    low: Annotated[
        float,
        Field(
            ge=0, le=1000, description="planes that turn less often than this are slowed by the whole factor"
        ),
    ] = 1.0
    high: Annotated[
        float, Field(ge=0, le=1000, description="planes that turn more often than this stay as they are")
    ] = 4.0
    seed: Seed = 0


class RopeModel(Parameters):
    """A query and a key of a real model, moved to other positions by the model's own rotation."""

    model: Annotated[ModelName, Field(json_schema_extra={"takes": ["one stack", "rope"]})] = "smollm2"
    text: Text = "The animal didn't cross the street because it was too tired."
    layer: Annotated[int, Field(ge=0, le=1000, description="a layer, counted from 0")] = 3
    head: Annotated[int, Field(ge=0, le=1000, description="a query head, counted from 0")] = 0
    query: Annotated[
        int, Field(ge=0, le=100_000, description="the token whose query it is, counted from 0")
    ] = 8
    key: Annotated[int, Field(ge=0, le=100_000, description="the token whose key it is, counted from 0")] = 1
    shift: Annotated[int, Field(ge=0, le=4096, description="by how many positions both are moved")] = 100
