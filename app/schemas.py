"""What the HTTP API reads: typed, bounded, and shown in its documentation."""

import re
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from model.errors import InputError

# The largest body that is read: a custom mask for every model here is smaller.
MAX_BODY = 8_000_000
# A pasted novel still tokenizes in about a second; what a model can run is far below.
MAX_TEXT = 1_000_000
MAX_IDS = 100_000
MAX_SIDE = 8192

ModelId = Annotated[
    StrictStr, Field(min_length=1, max_length=200, description="built-in name, org/name, or local:root/name")
]


Recordable = Literal[
    "resid", "mid", "attn_out", "cross_out", "ffn_out", "head_out", "ffn_pre", "ffn_act", "norms"
]
RECORDABLES = get_args(Recordable)


class TraceRequest(BaseModel):
    """One run: a model, a text (or exactly these ids), and a plan of interventions."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    model: ModelId
    text: Annotated[StrictStr, Field(max_length=MAX_TEXT)] | None = None
    text_pair: Annotated[StrictStr, Field(max_length=MAX_TEXT)] | None = None
    ids: Annotated[list[StrictInt], Field(max_length=MAX_IDS)] | None = None
    target: (
        Annotated[StrictStr, Field(max_length=MAX_TEXT, description="the decoder's text, beside an encoder")]
        | None
    ) = None
    target_ids: Annotated[list[StrictInt], Field(max_length=MAX_IDS)] | None = None
    audio: (
        Annotated[StrictStr, Field(description="a WAV or FLAC file in base64, for speech models")] | None
    ) = None
    recording: (
        Annotated[StrictStr, Field(max_length=100, description="a sound of GET /api/recordings instead")]
        | None
    ) = None
    plan: Annotated[
        list[dict[str, object]], Field(max_length=1000, description="interventions, see docs/api.md")
    ] = []
    record: Annotated[list[Recordable], Field(max_length=len(RECORDABLES))] = []


class CompareRequest(BaseModel):
    """Two runs to hold against each other, token by token or word by word."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    a: TraceRequest
    b: TraceRequest
    by: Literal["token", "word"] = "token"


class LoadRequest(BaseModel):
    """A model to fetch and load."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    model: ModelId
    revision: Annotated[StrictStr, Field(max_length=100)] | None = None


class Tile(BaseModel):
    """Which part of one head's matrix to show, at which stage, and how large at most."""

    stage: Literal["weights", "raw", "scaled", "biased", "masked", "mask"] = Field(
        "weights", description="which step of the arithmetic"
    )
    rows: str | None = Field(None, description="queries, half-open a:b")
    cols: str | None = Field(None, description="keys, half-open a:b")
    max: int = Field(512, ge=1, le=MAX_SIDE, description="longer sides are pooled to this")
    pool: Literal["max", "mean"] = Field("max", description="what a pooled cell shows")
    format: Literal["npy", "json"] = Field("npy", description="numbers as .npy or JSON")

    def queries(self, count: int) -> range:
        """The rows asked for, of `count`. Raises InputError where that is no range."""
        return parse_range(self.rows, "rows") or range(count)

    def keys(self, count: int) -> range:
        """The columns asked for, of `count`. Raises InputError where that is no range."""
        return parse_range(self.cols, "cols") or range(count)


def parse_range(text: str | None, name: str) -> range | None:
    """A half-open range "a:b" of a query string. Raises InputError where it is none."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,7}):(\d{1,7})", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise InputError(
            f"The range {name}={text} is none: write it as a:b with a below b, such as {name}=0:16."
        )
    return range(int(match[1]), int(match[2]))
