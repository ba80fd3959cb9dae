"""Why a body or a parameter is refused: what pydantic found, in one sentence of the house."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

UNKNOWN = "extra_forbidden"
NO_OBJECT = {"model_attributes_type", "model_type", "dict_type"}


def unusable(subject: str, error: Mapping[str, Any], body: object = None) -> str:
    """One sentence for the first of pydantic's errors; `body` is the type that was asked for, or None.

    A field that there is not is named, with those that there are.
    """
    if error["type"] == UNKNOWN and (fields := _beside(error["loc"], body)):
        where = " ".join(str(part) for part in error["loc"])
        return f"There is no field {where} here: there are {', '.join(fields)}."
    if error["type"] in NO_OBJECT or (error["type"] == "missing" and not error["loc"]):
        return f"{subject}: send a JSON object, such as {{}}."
    message = str(error["msg"])
    return f"{subject}: {message[:1].lower()}{message[1:]}."


def _beside(place: Sequence[object], body: object) -> list[str]:
    """The fields that stand where an unknown one was given."""
    for part in place[:-1]:
        fields = {name: field for model in _models(body) for name, field in model.model_fields.items()}
        body = fields[str(part)].annotation if str(part) in fields else body
    return [name for model in _models(body) for name in model.model_fields]


def _models(kind: object) -> Iterator[type[BaseModel]]:
    """The models that a type may be: itself, or parts of a union or a list."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models(part)
