"""Parameters of the labs on positions that are added to the embedding."""

from typing import Annotated

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Seed

EVEN = {"multipleOf": 2}


class Positions(Parameters):
    """The sinusoidal positions of Vaswani et al. 2017, section 3.5."""

    d_model: Annotated[
        int, Field(ge=1, le=1024, json_schema_extra=EVEN, description="width of the model, an even number")
    ] = 128
    base: Annotated[
        float, Field(ge=1, le=1e9, description="the wavelengths grow from 2π towards 2π times this number")
    ] = 10_000.0
    length: Annotated[int, Field(ge=1, le=2048, description="how many positions there are")] = 128
    pair: Annotated[int, Field(ge=0, le=511, description="the pair of dimensions, counted from 0")] = 0
    position: Annotated[int, Field(ge=0, le=2047, description="the position p to start from")] = 10
    offset: Annotated[
        int, Field(ge=-2047, le=2047, description="the step k from p to p + k, which is no less than 0")
    ] = 7


class LearnedPositions(Parameters):
    """A table of positions that a real model has learned."""

    model: Annotated[ModelName, Field(json_schema_extra={"takes": "learned"})] = "minilm"
    position: Annotated[
        int, Field(ge=0, le=1_000_000, description="the position that all others are compared with")
    ] = 100
    first: Annotated[
        int, Field(ge=0, le=1_000_000, description="the first position of the pictures of the table")
    ] = 1
    leave_out: Annotated[
        int, Field(ge=0, le=16, description="first positions left out of PCA and Fourier transform")
    ] = 1
    seed: Seed = 0


class PastLength(Parameters):
    """Small models trained on short texts, one for each way to tell positions, then run on longer ones."""

    trained: Annotated[int, Field(ge=16, le=48, description="tokens of the texts they are trained on")] = 32
    times: Annotated[int, Field(ge=2, le=6, description="how many times longer the texts they then read")] = 4
    steps: Annotated[int, Field(ge=1, le=400, description="training steps of each model")] = 160
    noise: Annotated[float, Field(ge=0, le=1, description="share of tokens that follow no rule")] = 0.1
    seed: Seed = 0
