"""Parameters of the labs on the families of Transformers."""

import json
from typing import Annotated, Literal

from pydantic import Field

from model.labs.parameters.base import Parameters, Seed
from model.labs.published import published

EncoderOnly = Literal["bert-base", "bert-large", "distilbert", "roberta-base"]
DecoderOnly = Literal[
    "gpt2",
    "gpt2-medium",
    "gpt2-large",
    "gpt2-xl",
    "distilgpt2",
    "gpt3",
    "llama2-7b",
    "llama3-8b",
    "mistral-7b",
]
EncoderDecoder = Literal["t5-small", "t5-base", "whisper-tiny", "whisper-base", "whisper-small"]
Family = Literal[EncoderOnly, DecoderOnly, EncoderDecoder]
Precision = Literal["float32", "bfloat16", "int8"]

Tokens = Annotated[
    int, Field(ge=1, le=2**20, description="length of the text in tokens, and of an encoder's source")
]
Numbers = Annotated[Precision, Field(description="the type that weights and cache are stored in")]


class Families(Parameters):
    """What a published architecture is made of, and what it costs at a length."""

    family: Annotated[Family, Field(description="the published architecture")] = "gpt2"
    tokens: Tokens = 1024
    precision: Numbers = "bfloat16"


class ConfigCard(Parameters):
    """The same for a config.json of your own."""

    text: Annotated[
        str,
        Field(
            title="config.json",
            min_length=2,
            max_length=100_000,
            description="the text of a config.json",
            json_schema_extra={"file": True},
        ),
    ] = json.dumps(published().models["gpt2"].config, indent=2)
    tokens: Tokens = 1024
    precision: Numbers = "bfloat16"


class Archetypes(Parameters):
    """Who sees whom in the three kinds of Transformer."""

    encoder_only: Annotated[EncoderOnly, Field(description="the encoder-only architecture")] = "bert-base"
    decoder_only: Annotated[DecoderOnly, Field(description="the decoder-only architecture")] = "gpt2"
    encoder_decoder: Annotated[EncoderDecoder, Field(description="the encoder–decoder architecture")] = (
        "t5-small"
    )
    tokens: Annotated[
        int, Field(ge=1, le=32, description="tokens of the text, or of the decoder's target")
    ] = 8
    source: Annotated[
        int, Field(ge=1, le=32, description="positions of the source that the encoder reads")
    ] = 10
    seed: Seed = 0


class ScalingLaws(Parameters):
    """Where a model stands on the scaling curves."""

    parameters: Annotated[
        float, Field(ge=1, le=1e16, description="parameters of the model, embeddings left out")
    ] = 1e8
    tokens: Annotated[float, Field(ge=1, le=1e18, description="tokens it is trained on")] = 1e10
