"""Errors as RFC 9457 problem documents: what happened, to which input, and what to do."""

import json
import logging
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.pages import error_page, wants_page
from app.refusals import unusable
from app.schemas import MAX_BODY
from app.strict_json import GivenTwice
from model.errors import AtlasError, Busy, NotReady

RETRY_SECONDS = "2"

logger = logging.getLogger(__name__)


def problem(slug: str, status: int, detail: str, **extra: object) -> JSONResponse:
    """A problem document. `extra` holds machine-readable facts beside the sentence."""
    body = {
        **extra,
        "type": f"urn:attention-atlas:{slug}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    # Not kept: a trace that is gone is back, at the same address, once its text has run again.
    headers = {"Cache-Control": "no-store"}
    return _Ascii(body, status_code=status, media_type="application/problem+json", headers=headers)


def too_large() -> Response:
    """The answer to a body past the limit."""
    return problem(
        "too-large",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The request is larger than {MAX_BODY // 1_000_000} MB, more than any model here reads: send less.",
    )


def unexpected(request: Request, error: Exception) -> Response:
    """The answer to a mistake of ours, which goes to the log and not to the user."""
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    detail = (
        "The server made a mistake; your text is still here. "
        "Try again, and report it with the server's log if it stays."
    )
    return error_page(request, status, detail) if wants_page(request) else problem("internal", status, detail)


def described(request: Request, error: Exception) -> dict[str, object]:
    """The problem document of an error, for an answer that has begun already."""
    answer = _atlas_error(request, error) if isinstance(error, AtlasError) else unexpected(request, error)
    document: dict[str, object] = json.loads(bytes(answer.body))
    return document


def install(app: FastAPI) -> None:
    """Makes every error of `app` a problem document."""
    app.add_exception_handler(AtlasError, _atlas_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(GivenTwice, _given_twice)


class _Ascii(JSONResponse):
    """JSON in ASCII: a quoted input may hold half a surrogate pair, which UTF-8 has no bytes for."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _atlas_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, AtlasError)
    answer = problem(error.slug, error.status, error.detail, **error.extra)
    if isinstance(error, Busy | NotReady):
        answer.headers["Retry-After"] = RETRY_SECONDS
    return answer


def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _malformed()
    where = " ".join(str(part) for part in first["loc"][1:])
    if first["type"] == "string_unicode":
        return problem(
            "bad-input",
            422,
            f"The {where or 'text'} holds half of a surrogate pair, which is no character: remove it.",
        )
    subject = f"The request's {where or 'body'} is not usable"
    told = {**first, "loc": first["loc"][1:]}
    return problem("bad-request", 422, unusable(subject, told, _body_of(request)), field=where)


def _given_twice(_: Request, error: Exception) -> Response:
    assert isinstance(error, GivenTwice)
    detail = f"The request's body gives “{error.name}” twice: leave one of them out."
    return problem("bad-request", HTTPStatus.UNPROCESSABLE_ENTITY, detail, field=error.name)


def _body_of(request: Request) -> object:
    """The type of the body that a request's address reads; None where it reads none."""
    field = getattr(request.scope.get("route"), "body_field", None)
    return None if field is None else field.field_info.annotation


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return too_large()
    if status == HTTPStatus.BAD_REQUEST:
        return _malformed()
    sentence = _SENTENCES.get(status, "{method} {path} cannot be answered.")
    detail = sentence.format(path=request.url.path, method=request.method)
    if wants_page(request):
        return error_page(request, status, detail)
    answer = problem(status.phrase.lower().replace(" ", "-"), status, detail)
    answer.headers.update(error.headers or {})
    return answer


def _malformed() -> Response:
    detail = "The request's body is not JSON: mend it and send again."
    return problem("malformed-json", HTTPStatus.BAD_REQUEST, detail)


_SENTENCES = {
    HTTPStatus.NOT_FOUND: "There is nothing at {path}: see /docs for what there is.",
    HTTPStatus.METHOD_NOT_ALLOWED: "{path} does not answer {method}: see /docs for what it does.",
}
