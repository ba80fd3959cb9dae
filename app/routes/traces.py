"""Traces: run a text once, then look into it by id. Answers by id never change, so browsers may keep them."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response

from app.deps import FoundEngine, Layers
from app.schemas import Tile, TraceRequest
from app.strict_json import JsonRoute

if TYPE_CHECKING:
    from app.services.engine import Picture

router = APIRouter(prefix="/api/traces", tags=["traces"], route_class=JsonRoute)

KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}

NPY: dict[int | str, dict[str, object]] = {
    200: {"content": {"application/x-npy": {"schema": {"type": "string", "format": "binary"}}}}
}

TraceId = Annotated[str, Path(description="the id a POST answered with")]
Group = Annotated[str, Path(description="stack and kind, such as encoder.self")]
Site = Annotated[str, Path(description="such as encoder.self.3")]
Head = Annotated[int, Path(ge=0, description="head of that site, counted from 0")]
Index = Annotated[int, Query(ge=0, description="index of a token that ran")]


@router.post("", status_code=201, summary="Run a text (or ids) through a model, under a plan")
def open_trace(request: TraceRequest, found: FoundEngine) -> JSONResponse:
    """The same request gives the same id."""
    return JSONResponse(found.open_trace(request).as_json(), status_code=201)


@router.get(
    "/{trace_id}/heads", summary="Entropy, diagonal, previous, next, first and largest weight of every head"
)
def heads(trace_id: TraceId, layers: Layers, found: FoundEngine) -> JSONResponse:
    """Definitions come with the numbers."""
    return JSONResponse(found.figures(trace_id, layers), headers=KEPT)


@router.get(
    "/{trace_id}/overview/{group}",
    summary="Thumbnails of all heads: npy uint8 [L, H, T', S']",
    response_class=Response,
    responses=NPY,
)
def overview(
    trace_id: TraceId,
    group: Group,
    layers: Layers,
    found: FoundEngine,
    size: Annotated[int, Query(ge=1, le=128, description="largest side of a thumbnail")] = 32,
) -> Response:
    """Max-pooled to `size` a side, round(255 · weight)."""
    picture = found.overview(trace_id, group, size, layers)
    return _npy(picture)


@router.get(
    "/{trace_id}/attention/{site}/{head}",
    summary="One head's matrix at one stage: npy or JSON",
    responses=NPY,
)
def attention(
    trace_id: TraceId,
    site: Site,
    head: Head,
    found: FoundEngine,
    tile: Annotated[Tile, Query()],
) -> Response:
    """Headers say which rows and columns, and whether cells were pooled."""
    picture = found.attention(trace_id, site, head, tile)
    if tile.format == "json":
        return JSONResponse(picture.as_json(), headers=KEPT | picture.headers)
    return _npy(picture)


@router.get("/{trace_id}/pair/{site}/{head}", summary="The arithmetic of one query–key pair")
def pair(
    trace_id: TraceId, site: Site, head: Head, query: Index, key: Index, found: FoundEngine
) -> JSONResponse:
    """From q and k to the weight, every number on the way."""
    return JSONResponse(found.pair(trace_id, site, head, query, key), headers=KEPT)


@router.get("/{trace_id}/links/{group}", summary="The weight of one query–key pair in every head")
def links(trace_id: TraceId, group: Group, query: Index, key: Index, found: FoundEngine) -> JSONResponse:
    """weights[i][head], of the layer layers[i]."""
    return JSONResponse(found.links(trace_id, group, query, key), headers=KEPT)


def _npy(picture: "Picture") -> Response:
    # Weights hardly shrink, and trying takes longer than sending them; the bytes of thumbnails and masks do.
    plain = {"Content-Encoding": "identity"} if picture.tensor.is_floating_point() else {}
    return Response(picture.data, media_type="application/x-npy", headers=KEPT | picture.headers | plain)
