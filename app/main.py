"""The application: settings in, a FastAPI app out. No state outside the app that `create_app` returns."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from app import __version__, errors
from app.assets import OurFiles, Plotly
from app.deps import Services
from app.described import describe_problems
from app.paths import STATIC
from app.routes import compare, health, labs, learn, models, pages, recordings, traces
from app.security import Guard
from app.services.model_pool import ModelPool
from app.settings import Settings, is_loopback

if TYPE_CHECKING:
    from model.loading import LoadedModel

# Below this a packet holds the answer anyway; level 1 costs about a millisecond for a picture of all heads.
GZIP_FROM_BYTES = 2048
GZIP_LEVEL = 1


def create_app(settings: Settings) -> FastAPI:
    """The app for these settings. Creating it takes no torch: that comes in a thread of its own."""
    app = FastAPI(
        title="Attention Atlas",
        version=__version__,
        description="Attention in real Transformers: every layer, every head, every number.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.plotly = Plotly(settings.cache_dir)
    app.state.services = Services(settings, ModelPool(settings, _loader(settings)))
    errors.install(app)
    describe_problems(app)
    for part in (health, models, traces, compare, labs, learn, recordings, pages):
        app.include_router(part.router)
    app.mount("/static", OurFiles(directory=STATIC), name="static")
    app.add_middleware(GZipMiddleware, minimum_size=GZIP_FROM_BYTES, compresslevel=GZIP_LEVEL)
    beyond = not is_loopback(settings.host)
    app.add_middleware(Guard, allowed_hosts=settings.allowed_hosts, any_address=beyond)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    threading.Thread(target=_start_engine, args=(services,), name="engine", daemon=True).start()
    threading.Thread(target=app.state.plotly.pack, name="pack-plotly", daemon=True).start()
    for model_id in services.settings.preload:
        services.pool.request(model_id)
    yield
    services.pool.close()


def _start_engine(services: Services) -> None:
    try:
        from app.services.start import start_engine  # noqa: PLC0415 -- this is where torch comes in

        services.arrive(start_engine(services.settings, services.pool))
    except Exception as failure:  # noqa: BLE001 -- whatever it is, requests that wait for the engine must hear of it
        services.arrive(None, failure)


def _loader(settings: Settings) -> "Callable[[Path], LoadedModel]":
    def bring(path: Path) -> "LoadedModel":
        from app.services.start import load  # noqa: PLC0415 -- this is where torch comes in

        return load(path, settings)

    return bring
