"""What every request must pass, so that no web page a user visits can drive or read this server.

A Host allow-list stops DNS rebinding; an Origin check and a JSON content type on every POST stop cross-site
requests; bodies are bounded; every answer carries a Content-Security-Policy that lets only our own files run.
"""

from collections.abc import Collection
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import problem, too_large, unexpected
from app.schemas import MAX_BODY

OWN_SITE = {"same-origin", "none"}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """ASGI middleware that refuses what must not come in and marks what goes out."""

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str], *, any_address: bool = False) -> None:
        """With `any_address` every numeric address passes as Host.

        That is safe: DNS rebinding makes a browser send the attacker's name, never a number.
        """
        self.app = app
        self.allowed_hosts = {host.lower() for host in allowed_hosts}
        self.any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it with the reason why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        started = False

        async def marked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        try:
            await (refusal or self.app)(scope, _bounded(receive), marked)
        except Exception as failure:
            if started:
                raise
            await unexpected(Request(scope), failure)(scope, receive, marked)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self._answers_to(_name(host)):
            return problem(
                "refused",
                HTTPStatus.MISDIRECTED_REQUEST,
                f"This server does not answer to the name {_name(host) or '(none)'}: "
                "its owner can add it to ATLAS_ALLOWED_HOSTS.",
            )
        if method in {"GET", "HEAD", "OPTIONS"}:
            return None
        if _is_foreign(headers.get("origin"), host) or headers.get("sec-fetch-site", "none") not in OWN_SITE:
            return problem(
                "refused",
                HTTPStatus.FORBIDDEN,
                "This request comes from another site's page, which may not drive this server.",
            )
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return problem(
                "refused",
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "Send the body as JSON, with the header Content-Type: application/json.",
            )
        # A length that is no number, or none, is found out while the body is read.
        length = headers.get("content-length", "0").lstrip("0")
        long = length.isdecimal() and (len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY)
        return too_large() if long else None

    def _answers_to(self, name: str) -> bool:
        return (
            name in self.allowed_hosts
            or "*" in self.allowed_hosts
            or (self.any_address and _is_address(name))
        )


def _name(host: str) -> str:
    """The Host header without its port."""
    if host.startswith("["):
        return "".join(host.partition("]")[:2]).lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _is_foreign(origin: str | None, host: str) -> bool:
    """Whether another origin's page asks. The scheme may differ: a proxy may speak HTTPS for this server."""
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != host.lower()
    except ValueError:
        return True


def _bounded(receive: Receive) -> Receive:
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MAX_BODY:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return message

    return bounded
