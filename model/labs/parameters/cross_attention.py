"""Parameters of the lab on cross-attention in a real encoder–decoder."""

from typing import Annotated

from pydantic import Field

from model.labs.parameters.base import ModelName, Parameters


class CrossAttention(Parameters):
    """Where a decoder looks in what its encoder heard or read, token by token."""

    model: Annotated[ModelName, Field(json_schema_extra={"takes": "cross"})] = "whisper-tiny.en"
    recording: Annotated[
        str, Field(max_length=100, description="the sound for a model that hears; empty: the first there is")
    ] = ""
    text: Annotated[str, Field(max_length=20_000, description="the text for a model that reads")] = ""
    target: Annotated[
        str, Field(max_length=2_000, description="what the decoder reads; empty: what the model writes")
    ] = ""
    layer: Annotated[int, Field(ge=0, le=1000, description="the decoder's layer, from 0")] = 2
    head: Annotated[int, Field(ge=0, le=1000, description="the head of its cross-attention, from 0")] = 4
