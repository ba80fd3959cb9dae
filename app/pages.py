"""The HTML pages: templates, and what they need to know."""

import hashlib
from functools import cache
from http import HTTPStatus

from fastapi import Request
from fastapi.templating import Jinja2Templates
from starlette.responses import Response

from app import __version__
from app.assets import PLOTLY_URL, plotly_style_ids
from app.paths import STATIC, TEMPLATES

TEMPLATE_ENGINE = Jinja2Templates(directory=TEMPLATES)


def page(request: Request, name: str, status: int = HTTPStatus.OK, **context: object) -> Response:
    """A rendered page, never cached without asking: it names the assets of this version."""
    known = {
        "asset_version": asset_version(),
        "plotly_url": PLOTLY_URL,
        "modules": modules(),
        "plotly_style_ids": plotly_style_ids(),
        "version": __version__,
    }
    answer = TEMPLATE_ENGINE.TemplateResponse(request, name, {**known, **context}, status_code=status)
    answer.headers["Cache-Control"] = "no-cache"
    return answer


def error_page(request: Request, status: HTTPStatus, detail: str) -> Response:
    """A page that says what went wrong."""
    return page(request, "error.html", status, title=status.phrase, detail=detail)


def wants_page(request: Request) -> bool:
    """Whether a person in a browser, not a program, asks."""
    accepts_html = "text/html" in request.headers.get("accept", "")
    return accepts_html and request.method == "GET" and not request.url.path.startswith("/api/")


@cache
def asset_version() -> str:
    """A hash over all static files, which changes with any of them."""
    digest = hashlib.sha256()
    for file in sorted(path for path in STATIC.rglob("*") if path.is_file()):
        digest.update(file.relative_to(STATIC).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]


@cache
def modules() -> list[str]:
    """Every JavaScript module a page may import, so that it can ask for all at once."""
    folders = ("figures", "ui")
    found = [
        *STATIC.glob("js/*.js"),
        *(file for folder in folders for file in STATIC.glob(f"js/{folder}/*.js")),
    ]
    return [
        f"/static/{file.relative_to(STATIC).as_posix()}" for file in sorted(found) if file.name != "early.js"
    ]
