"""`attention-atlas serve`: answer at once, bring the models in the background."""

import errno
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from app.services.model_sources import resolve
from app.settings import Settings, is_loopback, load_settings, unknown_variables
from app.terminal import ProgressLine

if TYPE_CHECKING:
    from app.services.model_pool import ModelPool

BACKLOG = 128
# A page that follows a download holds its connection open; Ctrl-C does not wait for it longer.
GRACE_SECONDS = 2
USAGE_ERROR = 2


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on [default: 127.0.0.1].")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on, 0 for a free one [default: 8000].")
    ] = None,
    model_root: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Offer the models below this folder; may be repeated."),
    ] = None,
) -> None:
    """Start the server and print its address.

    Sets OMP_WAIT_POLICY=passive unless it is set: by default the threads of a run spin while they wait, and
    where a browser and an event loop share the machine, one busy neighbour then doubles the time of a run,
    with outliers of fifteen times. Waiting passively costs little alone and stays steady beside others.
    """
    settings = load_settings(host=host, port=port, model_root=tuple(model_root) if model_root else None)
    for model_id in settings.preload:
        resolve(model_id, None, settings)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    listener = _listen(settings)
    _introduce(settings, listener)
    _run(settings, listener)


def _listen(settings: Settings) -> socket.socket:
    """The bound socket; connections wait in it from now on. Exit status 2 where the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        if error.errno == errno.EADDRINUSE:
            words = f"{where} is already in use; stop the other server or choose another --port."
        else:
            words = (
                f"{where} cannot be listened on ({error.strerror or error}); choose another --host or --port."
            )
        typer.echo(f"attention-atlas: {words}", err=True)
        raise typer.Exit(USAGE_ERROR) from error
    # Connections inherit this. The event loop sets it itself only on sockets that it made; without it the
    # last packet of an answer waits some 40 ms for the browser's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _introduce(settings: Settings, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    typer.echo(f"Attention Atlas is at http://{_address(settings.host)}:{port}/ (stop with Ctrl-C)")
    if not is_loopback(settings.host):
        hub = "on, as ATLAS_HUB says" if settings.hub else "off; ATLAS_HUB=on allows it"
        typer.echo(f"Other machines can reach it. Fetching from the Hugging Face Hub is {hub}.")
    for name in unknown_variables():
        typer.echo(f"{name} is set but is no setting of Attention Atlas; is it misspelt?", err=True)
    sys.stdout.flush()


def _address(host: str) -> str:
    """The host as a browser on this machine writes it: a wildcard such as 0.0.0.0 is no address to go to."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 -- compared, not bound
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _run(settings: Settings, listener: socket.socket) -> None:
    # Imported after the address is printed, which should not wait for the web stack.
    import uvicorn  # noqa: PLC0415

    from app.main import create_app  # noqa: PLC0415

    application = create_app(settings)
    arrivals = threading.Thread(
        target=_show_arrivals, args=(application.state.services.pool, settings.preload), daemon=True
    )
    arrivals.start()
    config = uvicorn.Config(
        application, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
    )
    uvicorn.Server(config).run(sockets=[listener])


def _show_arrivals(pool: "ModelPool", ids: tuple[str, ...]) -> None:
    """Show each model's way from the index to memory, in the order they were asked for."""
    for model_id in ids:
        line = ProgressLine(model_id, sys.stderr)
        for status in pool.changes(model_id):
            if status.progress is not None and status.message is not None:
                line.show(status.progress, status.message)
        line.say(status.state if status.message is None else f"{status.state}: {status.message}")
