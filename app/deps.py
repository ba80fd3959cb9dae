"""What routes are given: the pool at once, the engine as soon as torch is imported."""

import threading
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Query, Request

from app.schemas import parse_range
from app.services.model_pool import ModelPool
from app.settings import Settings
from model import zoo
from model.errors import NotReady

if TYPE_CHECKING:
    from app.services.engine import Engine
else:
    # FastAPI evaluates annotations, and importing the engine would bring torch in before /healthz can answer.
    Engine = Any

IMPORT_SECONDS = 30.0


class Services:
    """The services of one app. The engine arrives later: /healthz must not wait for the import of torch."""

    def __init__(self, settings: Settings, pool: ModelPool) -> None:
        self.settings = settings
        self.pool = pool
        self._engine: Engine | None = None
        self._failure: BaseException | None = None
        self._arrived = threading.Event()

    def arrive(self, engine: "Engine | None", failure: BaseException | None = None) -> None:
        """The engine is there, or why it will not be."""
        self._engine, self._failure = engine, failure
        self._arrived.set()

    def engine(self) -> "Engine":
        """The engine. Raises NotReady where it did not come in time."""
        self._arrived.wait(IMPORT_SECONDS)
        if self._engine is None:
            why = f": {self._failure}" if self._failure else ""
            raise NotReady(
                f"The server could not start its engine{why}. Look at its log, or try again in a moment."
            )
        return self._engine

    @property
    def default_model(self) -> str:
        """The model a page opens with."""
        return next(iter(self.settings.preload), next(iter(zoo.entries())))

    @property
    def device(self) -> str | None:
        """Where models run, once that is known."""
        return self._engine.device if self._engine else None


def services(request: Request) -> Services:
    """The app's services."""
    found: Services = request.app.state.services
    return found


def engine(found: Annotated[Services, Depends(services)]) -> "Engine":
    """The app's engine; runs in a worker thread, so that waiting blocks nobody."""
    return found.engine()


def layers(
    layers: Annotated[str | None, Query(description="half-open range of layers, a:b; all by default")] = None,
) -> range | None:
    """The layers asked for."""
    return parse_range(layers, "layers")


FoundEngine = Annotated[Engine, Depends(engine)]
FoundServices = Annotated[Services, Depends(services)]
Layers = Annotated[range | None, Depends(layers)]
