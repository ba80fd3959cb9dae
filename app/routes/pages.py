"""The pages a person opens."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app import __version__
from app.deps import FoundServices
from app.pages import page
from model.recordings import recordings

router = APIRouter(include_in_schema=False)


@router.get("/")
async def explore(request: Request, found: FoundServices) -> Response:
    """Explore: a sentence, all heads, one head, one pair."""
    known = [one.as_json() for one in recordings().values()]
    boot = {"default_model": found.default_model, "version": __version__, "recordings": known}
    return page(request, "explore.html", boot=boot)


@router.get("/docs")
async def api(request: Request) -> Response:
    """The API, as its OpenAPI document describes it."""
    return page(request, "about-api.html", routes=_routes(request.app.openapi()))


@router.get("/static/vendor/plotly.min.js")
async def plotly(request: Request) -> Response:
    """Plotly, from the installed package."""
    answer: Response = request.app.state.plotly.answer(request)
    return answer


def _routes(document: dict[str, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {"method": method.upper(), "path": path, **operation, "parameters": _parameters(operation)}
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if isinstance(operation, dict)
    ]


def _parameters(operation: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters of an operation, each with its default beside its name."""
    return [{**known, "default": known["schema"].get("default")} for known in operation.get("parameters", ())]
