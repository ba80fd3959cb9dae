"""Parameters of the lab on word order."""

from typing import Annotated, Literal

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Seed, Text

Told = Literal["on", "off", "shuffled"]
Sight = Literal["own", "bidirectional", "causal"]


class Order(Parameters):
    """Two orders of the same words on one model, with and without positions."""

    model: ModelName = "minilm"
    text: Text = "the dog bites the man"
    other: Annotated[
        str, Field(min_length=1, max_length=20_000, description="the same words in another order")
    ] = "the man bites the dog"
    positions: Annotated[
        Told,
        Field(description="what the model is told of positions; shuffled: each token hears another's place"),
    ] = "off"
    mask: Annotated[Sight, Field(description="which tokens a token sees")] = "own"
    seed: Seed = 0


class MaskOrder(Parameters):
    """One word, many times over, on a model without positions: what a causal mask still gives away."""

    model: ModelName = "minilm"
    word: Annotated[str, Field(min_length=1, max_length=60, description="the word that is repeated")] = "dog"
    repeats: Annotated[int, Field(ge=2, le=200, description="how often it stands in the text")] = 24
    head: Annotated[int, Field(ge=0, le=1000, description="a head of the first layer, counted from 0")] = 0
