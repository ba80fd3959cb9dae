"""The models there are, and bringing one in."""

import dataclasses
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from app.deps import FoundServices, Services
from app.schemas import LoadRequest
from app.strict_json import JsonRoute

router = APIRouter(prefix="/api/models", tags=["models"], route_class=JsonRoute)


@router.get("", summary="Every model: what it is, and whether it is here")
def list_models(found: FoundServices) -> dict[str, object]:
    """Facts that only the weights can tell are null until a model was loaded."""
    return {
        "default": found.default_model,
        "device": found.device,
        "dtype": found.settings.dtype,
        "hub": found.settings.hub,
        "models": [dataclasses.asdict(status) for status in found.pool.status()],
    }


@router.post(
    "/load",
    summary="Fetch and load a model; progress as server-sent events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
def load_model(request: LoadRequest, found: FoundServices) -> StreamingResponse:
    """Each event's data is the model's status; the stream ends when it is ready or has failed."""
    model_id = found.pool.request(request.model, request.revision)
    return StreamingResponse(
        _events(found, model_id), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _events(found: Services, model_id: str) -> AsyncIterator[str]:
    async for status in found.pool.follow(model_id):
        yield f"data: {json.dumps(dataclasses.asdict(status))}\n\n"
