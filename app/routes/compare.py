"""Two runs held against each other."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from app.deps import FoundEngine
from app.schemas import CompareRequest
from app.strict_json import JsonRoute

router = APIRouter(prefix="/api", tags=["compare"], route_class=JsonRoute)


@router.post("/compare", summary="What differs between two runs: heads, layers, readout")
def compare(request: CompareRequest, found: FoundEngine) -> JSONResponse:
    """What cannot be compared is null, with the reason beside it."""
    return JSONResponse(found.compare(request))
