"""A model's modules without memory or numbers: what is to be filled, or only counted."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from model.config import TransformerConfig
from model.transformer import Transformer

_FILLING = (nn.init.kaiming_uniform_, nn.init.uniform_, nn.init.normal_)
_EMPTY: dict[Callable[..., object], Callable[..., object]] = {
    torch.ones: torch.empty,
    torch.zeros: torch.empty,
}


class Unfilled(TorchFunctionMode):
    """Leaves out the filling of new weights: it does nothing there, and costs a second at first."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        _types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """What torch calls for each function within."""
        named = dict(kwargs or {})
        return named["tensor"] if func in _FILLING else _EMPTY.get(func, func)(*args, **named)


def blueprint(config: TransformerConfig) -> Transformer:
    """The model on the meta device: every parameter has its shape and no storage."""
    with torch.device("meta"), Unfilled():
        return Transformer(config)
