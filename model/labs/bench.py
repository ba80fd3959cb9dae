"""What a lab is given beside its parameters: models, and somebody who listens."""

from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from model.labs.result import Result
from model.loading import LoadedModel
from model.transformer import Transformer


class Cancelled(Exception):
    """Nobody waits for the result any more."""


def _no_models(model_id: str) -> LoadedModel:
    raise LookupError(model_id)


def _ignore(_fraction: float, _words: str, _so_far: Result | None) -> None:
    return None


@dataclass(frozen=True)
class Bench:
    """`model` gives a loaded model by its id, or raises NotReady or UnknownModel. `device` is what labs time.

    `report(fraction, words, so_far)` tells how far a lengthy lab is, with what it has found where that can be
    drawn already; it raises Cancelled where nobody listens any more. `findings` keeps, as long as a model is
    loaded, what a lab found out about it and need not measure again.
    """

    model: Callable[[str], LoadedModel] = field(default=_no_models)
    report: Callable[[float, str, Result | None], None] = field(default=_ignore)
    device: str = "cpu"
    findings: WeakKeyDictionary[Transformer, dict[str, object]] = field(default_factory=WeakKeyDictionary)
