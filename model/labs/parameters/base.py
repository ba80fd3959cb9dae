"""What all parameters of labs share."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

Seed = Annotated[
    int, Field(ge=0, le=2**32 - 1, description="starts the random numbers; the same seed repeats them")
]
ModelName = Annotated[str, Field(min_length=1, max_length=200, description="the model to look into")]
Text = Annotated[str, Field(min_length=1, max_length=20_000, description="the text to run")]


class Parameters(BaseModel):
    """Parameters of a lab: nothing is guessed from a wrong type, and what is unknown is refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )
