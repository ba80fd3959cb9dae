"""The API's own description: FastAPI's, with errors as the problem documents that they are."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from app.lab_schemas import Problem

PROBLEM = "application/problem+json"
READ = (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
SENT = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
# What FastAPI would answer, and what nothing here does.
UNUSED = ("HTTPValidationError", "ValidationError")


def describe_problems(app: FastAPI) -> None:
    """Makes `app.openapi()` say what every operation answers where it cannot do what was asked."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            for operations in document["paths"].values():
                for method, operation in operations.items():
                    operation["responses"] |= _problems(SENT if method == "post" else READ)
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            schemas["Problem"] = Problem.model_json_schema()
            for name in UNUSED:
                schemas.pop(name, None)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]


def _problems(statuses: tuple[HTTPStatus, ...]) -> dict[str, Any]:
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    named = {str(int(status)): status.phrase for status in statuses} | {"default": "Any other problem"}
    return {status: {"description": words, "content": content} for status, words in named.items()}
