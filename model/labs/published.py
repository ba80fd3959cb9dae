"""The published figures of `published.toml`, each with its citation. No torch here."""

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_FILE = Path(__file__).with_name("published.toml")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Model(_Entry):
    """An open model: its configuration, and its published number of parameters with what it includes.

    `rounded` is half a unit of the count's last printed digit, `beside` the parts that it includes and that
    are no part of the model here.
    """

    title: str
    paper: str
    source: str
    counted: str
    count: int
    config: Mapping[str, Any]
    rounded: int = 0
    beside: tuple[Literal["pooler"], ...] = ()
    remark: str | None = None


class Closed(_Entry):
    """A model whose authors publish no configuration: what others estimate of it."""

    title: str
    layers: int
    parameters: float
    source: str
    remark: str


class Again(_Entry):
    """A second published fit of a law, given by a constant or by a coefficient, and a place to compare at."""

    exponent: float
    constant: float | None = None
    coefficient: float | None = None
    at: float
    source: str

    def loss(self, x: float) -> float:
        """Nats a token at x."""
        if self.coefficient is not None:
            return self.coefficient * math.pow(x, -self.exponent)
        assert self.constant is not None
        return math.pow(self.constant / x, self.exponent)


class Law(_Entry):
    """A power law L(x) = (constant / x)^exponent in nats a token, and the range it was fitted on."""

    symbol: str
    unit: str
    exponent: float
    constant: float
    tested: Annotated[tuple[float, float], Field(description="least and most of what was trained")]
    again: Again

    def loss(self, x: float) -> float:
        """Nats a token at x."""
        return math.pow(self.constant / x, self.exponent)

    def fitted(self, x: float) -> bool:
        """Whether x lies within what was trained."""
        low, high = self.tested
        return low <= x <= high


class ScalingLaws(_Entry):
    """Loss by size, data and compute (Kaplan et al. 2020)."""

    paper: str
    parameters: Law
    tokens: Law
    compute: Law


class Published(BaseModel):
    """What the file says of models and scaling laws; other labs read tables of their own by `table`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    models: Mapping[str, Model]
    closed: Mapping[str, Closed]
    scaling_laws: ScalingLaws


@cache
def _whole() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text("utf-8"))


@cache
def published() -> Published:
    """Models and scaling laws. Raises pydantic's ValidationError where the file says something else."""
    return Published.model_validate(_whole())


def table(name: str) -> Mapping[str, Any]:
    """One table of the file, as it stands there. Raises KeyError where there is none of this name."""
    found: Mapping[str, Any] = _whole()[name]
    return found
