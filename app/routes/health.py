"""Whether the process is there, and whether it can answer yet."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from app.deps import FoundServices

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="200 as soon as the process answers")
async def healthz() -> dict[str, str]:
    """The process is alive."""
    return {"status": "ok"}


@router.get("/readyz", summary="200 once the default model has answered, 503 with the state before")
async def readyz(found: FoundServices) -> JSONResponse:
    """The default model can be used."""
    status = found.pool.status_of(found.default_model)
    ready = status.state == "ready"
    return JSONResponse({"state": "ready" if ready else status.words}, status_code=200 if ready else 503)
