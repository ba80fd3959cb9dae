"""Parameters of the labs about heads."""

from typing import Annotated, Literal

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Text

ANIMAL = "The animal didn't cross the street because it was too tired."

Projection = Literal["queries", "keys", "values", "output"]
Label = Literal[
    "previous",
    "next",
    "self",
    "induction",
    "duplicate",
    "first",
    "delimiter",
    "broad",
    "pronoun",
    "agreement",
    "adjective",
    "list",
]
Layer = Annotated[int, Field(ge=0, le=1000, description="the layer to look into, from 0")]
Occurrence = Annotated[int, Field(ge=1, le=1000, description="which of several, from 1")]
Word = Annotated[str, Field(min_length=1, max_length=200)]


class Heads(Parameters):
    """What the heads of one layer look at, what each adds, and how their subspaces overlap."""

    model: ModelName = "minilm"
    text: Text = ANIMAL
    layer: Layer = 3
    head: Annotated[int, Field(ge=0, le=1000, description="the head whose pattern is drawn, from 0")] = 1
    projection: Annotated[Projection, Field(description="whose subspaces are held against each other")] = (
        "output"
    )


class HeadSearch(Parameters):
    """Which heads link one word of a text to another."""

    model: ModelName = "minilm"
    text: Text = ANIMAL
    word: Annotated[Word, Field(description="the word that looks")] = "it"
    target: Annotated[
        Word, Field(description="the word that is looked at, or a special token by its name")
    ] = "animal"
    word_occurrence: Annotated[Occurrence, Field(description="which of several such words looks, from 1")] = 1
    target_occurrence: Annotated[
        Occurrence, Field(description="which of several such words is looked at, from 1")
    ] = 1


class HeadLabels(Parameters):
    """Labels of all heads from a fixed probe set, and which are at work in a text."""

    model: ModelName = "minilm"
    text: Text = ANIMAL
    label: Annotated[
        Label,
        Field(
            description="the label whose scores are drawn",
            json_schema_extra={"labels": {"first": "first token", "list": "list items"}},
        ),
    ] = "previous"


class OnePattern(Parameters):
    """What a model loses where the heads of each layer must share a pattern."""

    model: ModelName = "smollm2"
    text: Text = ANIMAL
