"""The Learn pages: the contents, and one page a subject."""

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from app.deps import FoundServices
from app.learn import PAGES, TOUR, used
from app.pages import page
from app.routes.labs import describe
from model.labs.catalogue import LABS

router = APIRouter(prefix="/learn", include_in_schema=False)


@router.get("")
async def contents(request: Request) -> Response:
    """The table of contents."""
    return page(request, "learn/contents.html", tour=TOUR)


@router.get("/{slug}")
async def learn(request: Request, slug: str, found: FoundServices) -> Response:
    """One page of the tour."""
    if slug not in PAGES:
        raise HTTPException(404)
    place = TOUR.index(PAGES[slug])
    boot = {
        "default_model": found.default_model,
        "labs": {name: describe(LABS[name]) for name in used(slug, "lab")},
    }
    before = TOUR[place - 1] if place else None
    after = TOUR[place + 1] if place + 1 < len(TOUR) else None
    return page(
        request,
        f"learn/{slug}.html",
        learn=PAGES[slug],
        tour=TOUR,
        boot=boot,
        widgets=used(slug, "widget"),
        before=before,
        after=after,
    )
