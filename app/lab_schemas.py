"""What a lab answers, as the API's description tells it: the shapes of `Result.as_json`."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from model.labs.catalogue import Lab

# Written out, since model.labs.result brings torch in; a test holds answers of every lab against this.
Origin = Literal["measured", "theory", "published", "estimate"]
Number = float | None
Tick = float | str | None


class _Shape(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class Axis(_Shape):
    """One axis: its label with the unit, whether its steps multiply, and whether it begins at zero."""

    label: str
    log: bool
    zero: bool = False


class Line(_Shape):
    """y against x; null where there is no finite number. The band is [low, high] around y."""

    name: str
    origin: Origin
    x: list[Tick]
    y: list[Number]
    band: Annotated[list[list[Number]], Field(min_length=2, max_length=2)] | None


class Chart(_Shape):
    """Lines, bars or points over common axes."""

    id: str
    title: str
    kind: Literal["lines", "bars", "points"]
    x: Axis
    y: Axis
    lines: list[Line]


class Matrix(_Shape):
    """Numbers row by row; `diverging` puts zero in the middle of the colours."""

    id: str
    title: str
    kind: Literal["matrix"]
    x: Axis
    y: Axis
    columns: list[Tick]
    rows: list[Tick]
    values: list[list[Number]]
    unit: str
    diverging: bool


class Check(_Shape):
    """A measurement beside what was expected of it; `about` is the series it belongs to."""

    name: str
    relation: Literal["=", "<=", ">="]
    expected: Number
    measured: Number
    tolerance: Number
    origin: Origin
    about: str | None
    holds: bool


class LabAnswer(_Shape):
    """What a lab found."""

    lab: str
    claims: list[str]
    series: list[Annotated[Chart | Matrix, Field(discriminator="kind")]]
    checks: list[Check]
    facts: dict[str, Any]
    notes: list[str]
    limits: dict[str, int]


def answer_of(lab: Lab) -> type[BaseModel]:
    """The answer of one lab, its parameters typed as that lab's are."""
    name = "".join(part.capitalize() for part in lab.name.split("-"))
    return create_model(
        f"{name}Answer", __base__=LabAnswer, __doc__=lab.question, parameters=(lab.parameters, ...)
    )


class Problem(BaseModel):
    """What happened, to which input, and what to do (RFC 9457); more fields may hold facts."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    type: Annotated[str, Field(description="urn:attention-atlas: and the kind")]
    title: Annotated[str, Field(description="the status in words")]
    status: int
    detail: Annotated[str, Field(description="one sentence for people")]
