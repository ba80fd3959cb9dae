"""Parameters of the lab about words in context."""

from typing import Annotated

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters, Text
from model.labs.parameters.heads import Layer


class Context(Parameters):
    """One word in two sentences: where its heads look, and how far its vectors part."""

    model: ModelName = "minilm"
    word: Annotated[
        str, Field(min_length=1, max_length=200, description="the word that both sentences hold")
    ] = "bank"
    first: Annotated[Text, Field(description="the first sentence")] = (
        "They tied the boat to a tree on the river and sat down on the bank."
    )
    second: Annotated[Text, Field(description="the second sentence")] = (
        "She took her savings and opened an account at the bank."
    )
    layer: Layer = 0
    senses: Annotated[
        str,
        Field(
            max_length=10_000,
            description="one example sentence of each sense, each on its own line, or none",
            json_schema_extra={"lines": 4},
        ),
    ] = (
        "Fishermen stood in the mud on the other side of the stream, below the steep bank.\n"
        "He needed a loan, so he talked to the manager of the bank.\n"
        "The hospital keeps the donated blood in a bank."
    )
