"""What all parameters of labs share."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

Seed = Annotated[
    int, Field(ge=0, le=2**32 - 1, description="starts the random numbers; the same seed repeats them")
]
# `takes` tells a page which models to offer; the lab itself says what it refuses.
ModelName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="the model to look into",
        json_schema_extra={"takes": "one stack"},
    ),
]
Text = Annotated[str, Field(min_length=1, max_length=20_000, description="the text to run")]


class Parameters(BaseModel):
    """Parameters of a lab: nothing is guessed from a wrong type, and what is unknown is refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, given: object) -> object:
        """Reads 64.0 as 64: a JSON schema's integers are numbers without a fraction, however written."""
        if not isinstance(given, dict):
            return given
        fields = cls.model_fields
        return {
            name: int(value)
            if name in fields
            and fields[name].annotation is int
            and isinstance(value, float)
            and value.is_integer()
            else value
            for name, value in given.items()
        }
