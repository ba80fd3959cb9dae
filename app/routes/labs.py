"""Labs: an experiment about one claim, with its own parameters."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from app.deps import Services
from app.errors import described
from model.labs.catalogue import LABS, Lab, no_lab
from model.labs.parameters.base import Parameters

router = APIRouter(prefix="/api/labs", tags=["labs"])

STREAM = "text/event-stream"
POLL_SECONDS = 0.2

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
    async def run_lab(
        request: Request, parameters: Parameters, accept: Annotated[str, Header(include_in_schema=False)] = ""
    ) -> Response:
        found: Services = request.app.state.services
        engine = await asyncio.to_thread(found.engine)
        if STREAM in accept:
            left = threading.Event()
            events = _events(engine.labs.follow(lab, parameters, left), left, request)
            return StreamingResponse(events, media_type=STREAM, headers={"Cache-Control": "no-store"})
        return JSONResponse(await asyncio.to_thread(engine.labs.run, lab, parameters))

    # FastAPI reads the body's type here: each lab has its own.
    run_lab.__annotations__["parameters"] = lab.parameters
    return run_lab


async def _events(told: Iterator[Event], left: threading.Event, request: Request) -> AsyncIterator[str]:
    """Server-sent events: progress, then the answer or a problem. Sets `left` when nobody listens."""
    try:
        while (event := await _next(told, request)) is not None:
            yield f"data: {json.dumps(event, allow_nan=False)}\n\n"
    except Exception as error:  # noqa: BLE001 -- the answer has begun: a problem must travel inside it
        yield f"event: problem\ndata: {json.dumps(described(request, error))}\n\n"
    finally:
        left.set()


async def _next(told: Iterator[Event], request: Request) -> Event | None:
    """What is told next; None at the end, or as soon as nobody listens any more."""
    coming = asyncio.ensure_future(asyncio.to_thread(lambda: next(told, None)))
    while not (await asyncio.wait({coming}, timeout=POLL_SECONDS))[0]:
        if await request.is_disconnected():
            return None
    return coming.result()


for _lab in LABS.values():
    router.add_api_route(
        f"/{_lab.name}", _endpoint(_lab), methods=["POST"], name=_lab.name, summary=_lab.question,
        description=f"Claims {', '.join(_lab.claims)}. With Accept: {STREAM} its progress comes first.",
    )  # fmt: skip


@router.api_route("/{name}", methods=["GET", "POST"], include_in_schema=False)
def refuse(name: str) -> None:
    """Names the labs that there are; one that there is takes POST, and is found before this."""
    if name in LABS:
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})
    raise no_lab(name)
