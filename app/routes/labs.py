"""Labs: an experiment about one claim, with its own parameters."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.deps import FoundEngine
from app.errors import described
from app.lab_schemas import answer_of
from app.strict_json import JsonRoute
from model.labs.catalogue import LABS, Lab, no_lab
from model.labs.parameters.base import Parameters

router = APIRouter(prefix="/api/labs", tags=["labs"], route_class=JsonRoute)

STREAM = "text/event-stream"
POLL_SECONDS = 0.2
ALSO_STREAMS: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The answer. A stream's events hold {fraction, words, result}, the last the answer",
        "content": {STREAM: {"schema": {"type": "string"}}},
    }
}

Event = dict[str, object]


@router.get("", summary="Every lab: what it asks, its claims, its parameters")
def list_labs() -> dict[str, object]:
    """Each lab's parameters as a JSON schema."""
    return {"labs": [describe(lab) for lab in LABS.values()]}


@cache
def describe(lab: Lab) -> dict[str, object]:
    """A lab as the list shows it; nobody changes the answer."""
    return {
        "name": lab.name,
        "question": lab.question,
        "claims": list(lab.claims),
        "lengthy": lab.lengthy,
        "parameters": lab.parameters.model_json_schema(),
    }


def _endpoint(lab: Lab) -> Callable[..., object]:
    defaults = lab.parameters()

    async def run_lab(
        request: Request,
        found: FoundEngine,
        parameters: Parameters = defaults,
        accept: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> Response:
        told, left, streams = _Told(), threading.Event(), wants_stream(accept)
        found.labs.start(lab, parameters, left, told.put, progress=streams)
        if streams:
            return _Stream(_events(told, request), left)
        try:
            # Where nobody listens any more there is nothing to answer.
            answers = [event["result"] async for event in told.until_the_end(request)]
            return JSONResponse(answers[-1]) if answers else Response()
        finally:
            left.set()

    # FastAPI reads the body's type here: each lab has its own.
    run_lab.__annotations__["parameters"] = lab.parameters
    return run_lab


def wants_stream(accept: str) -> bool:
    """Whether an Accept header asks for a stream: it is named, its weight not 0 (RFC 9110, 12.5.1)."""
    for offer in accept.lower().split(","):
        kind, *options = (part.strip() for part in offer.split(";"))
        if kind == STREAM:
            return not any(re.fullmatch(r"q\s*=\s*0(\.0*)?", option) for option in options)
    return False


class _Told:
    """What a lab tells from its thread, for the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()

    def put(self, event: Event | BaseException | None) -> None:
        """From any thread. After the end of the server nobody listens."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def until_the_end(self, request: Request) -> AsyncIterator[Event]:
        """Event by event, until nobody listens any more. Raises what the lab raised."""
        while True:
            try:
                event = await asyncio.wait_for(self._events.get(), POLL_SECONDS)
            except TimeoutError:
                if await request.is_disconnected():
                    return
                continue
            if event is None:
                return
            if isinstance(event, BaseException):
                raise event
            yield event


class _Stream(StreamingResponse):
    """Server-sent events; sets `left` when they end, however they do."""

    def __init__(self, content: AsyncIterator[str], left: threading.Event) -> None:
        super().__init__(content, media_type=STREAM, headers={"Cache-Control": "no-store"})
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left.set()


async def _events(told: _Told, request: Request) -> AsyncIterator[str]:
    """Progress, then the answer or a problem."""
    try:
        async for event in told.until_the_end(request):
            yield f"data: {json.dumps(event, allow_nan=False)}\n\n"
    except Exception as error:  # noqa: BLE001 -- the answer has begun: a problem must travel inside it
        yield f"event: problem\ndata: {json.dumps(described(request, error))}\n\n"


for _lab in LABS.values():
    router.add_api_route(
        f"/{_lab.name}", _endpoint(_lab), methods=["POST"], name=_lab.name, summary=_lab.question,
        description=f"Claims {', '.join(_lab.claims)}. With Accept: {STREAM} its progress comes first.",
        response_model=answer_of(_lab), responses=ALSO_STREAMS,
    )  # fmt: skip


@router.api_route("/{name}", methods=["GET", "POST"], include_in_schema=False)
def refuse(name: str) -> None:
    """Names the labs that there are; one that there is takes POST, and is found before this."""
    if name in LABS:
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})
    raise no_lab(name)
