"""Parameters of the labs about one head of a real model, and about its mask."""

from typing import Annotated, Literal

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Text

SENTENCE = "The animal didn't cross the street because it was too tired."
Layer = Annotated[int, Field(ge=0, le=9999, description="the layer, from 0")]
Head = Annotated[int, Field(ge=0, le=9999, description="the head, from 0")]
Token = Annotated[int, Field(ge=0, le=127)]
Ending = Annotated[str, Field(min_length=1, max_length=200, description="what replaces the last word")]


class AttentionRow(Parameters):
    """One query of one real head, at every stage from vectors to output."""

    model: ModelName = "minilm"
    text: Text = SENTENCE
    layer: Layer = 3
    head: Head = 1
    query: Annotated[Token, Field(description="the token that asks, from 0")] = 10
    key: Annotated[Token, Field(description="the token that is asked, from 0")] = 2
    mask: Annotated[
        Literal["own", "bidirectional", "causal"],
        Field(
            description="who sees whom: the model's own mask, everybody all, or nobody what comes later",
            json_schema_extra={"labels": {"own": "the model's own"}},
        ),
    ] = "own"


class MaskSwap(Parameters):
    """The same weights under another mask: a head, the outputs, and what a token can know of a later one."""

    model: ModelName = "minilm"
    text: Text = SENTENCE
    layer: Layer = 3
    head: Head = 1
    mask: Annotated[
        Literal["own", "bidirectional", "causal", "window", "prefix"],
        Field(
            description="who sees whom; a window shows `reach` tokens back, a prefix all the first",
            json_schema_extra={"labels": {"own": "the model's own"}},
        ),
    ] = "causal"
    reach: Annotated[
        int,
        Field(
            ge=0,
            le=127,
            description="tokens of a window or a prefix",
            json_schema_extra={"needs": {"mask": ["window", "prefix"]}},
        ),
    ] = 2
    ending: Ending = "wide."
