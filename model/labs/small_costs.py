"""What a small model of the same form costs, as torch counts it while the model runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from model.cache import Cache
from model.checkpoints.checkpoint import Checkpoint
from model.config import TransformerConfig
from model.labs.costs import Lengths
from model.labs.miniature import given, miniature
from model.rules import Window

TOKENS, SOURCE, SEED = 7, 5, 0


@dataclass(frozen=True)
class Small:
    """A small model of a configuration's form, and what one run of it took at `lengths`.

    `operations` are those of torch's own table for matrix products and convolutions, `kept` the numbers in
    the cache that generation uses, `attention` the numbers that came out of a softmax.
    """

    checkpoint: Checkpoint
    lengths: Lengths
    operations: int
    kept: int
    attention: int


class _Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations of matrix products, and outputs of softmax."""

    # torch's own FlopCounterMode hooks every module of the process, and other threads run models here.
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = self.attention = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else torch imports its compiler, a second's work, so as not to compile what nobody compiles here.
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Runs one operation of torch and counts it."""
        named = dict(kwargs or {})
        out = func(*args, **named)
        operation = getattr(func, "overloadpacket", func)
        if operation in flop_registry:
            self.operations += flop_registry[operation](*args, **named, out_val=out)
        if "softmax" in str(operation) and isinstance(out, Tensor):
            self.attention += out.numel()
        return out


def small(checkpoint: Checkpoint) -> Small:
    """The small model of a checkpoint's form, and what its run took: measured once for each configuration."""
    config, lengths, operations, kept, attention = _measured(checkpoint.config)
    return Small(replace(checkpoint, config=config), lengths, operations, kept, attention)


@lru_cache(maxsize=64)
def _measured(config: TransformerConfig) -> tuple[TransformerConfig, Lengths, int, int, int]:
    """Runs it on random inputs, so short that no window is full."""
    model = miniature(config, SEED)
    tokens = min(_windows(model.config))
    lengths = Lengths(tokens, SOURCE if model.config.encoder else 0)
    inputs, cache = given(model, tokens, SOURCE, SEED), Cache()
    with torch.no_grad(), _Counting() as counted:
        final = model(inputs, cache=cache, fused=False)  # [1, T, D]
        if model.config.head is not None:
            model.logits(final)
    kept = 0 if model.config.stack.name == "encoder" else cache.numbers
    return model.config, lengths, counted.operations, kept, counted.attention


def _windows(config: TransformerConfig) -> list[int]:
    """Lengths up to which nothing falls out of a window."""
    masks = [mask for stack in config.stacks for mask in (stack.mask, *(stack.layer_masks or ()))]
    return [TOKENS, *(mask.left + 1 for mask in masks if isinstance(mask, Window))]
