"""What a vector in the stream adds to a logit: direct logit attribution (Elhage et al. 2021).

The logits are a linear function of the final norm's output. But for one scale for the whole vector the norm
is linear too: under that scale the logit is a sum over all that was written into the stream.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from model.config import LayerNorm
from model.errors import InputError
from model.heads import TokenHead
from model.loading import LoadedModel
from model.trace import Trace


def predicts(loaded: LoadedModel) -> bool:
    """Whether the logits of next tokens stand straight after the last norm."""
    head = loaded.transformer.head
    return loaded.config.readout == "logits" and head is not None and head.activation is None


def check_sums(loaded: LoadedModel, model_id: str) -> None:
    """Raises InputError for a model whose logits are no sum over its stream."""
    if not predicts(loaded):
        raise InputError(f"{model_id} predicts no next token: choose a model that does, such as smollm2.")
    assert loaded.config.head is not None
    if loaded.config.head.softcap is not None or loaded.config.stack.norm_placement == "post":
        raise InputError(
            f"The logits of {model_id} are no sum over what its layers add: choose another, such as smollm2."
        )


def over_mean(logits: Tensor, answer: int) -> float:
    """A logit of logits [V] over their mean: a softmax sees no more."""
    return (logits[answer].double() - logits.double().mean()).item()


def attribution(loaded: LoadedModel, trace: Trace, at: int, answer: int) -> Callable[[Tensor], Tensor]:
    """What x [D], written at position `at`, adds to a token's logit over the mean logit: a function, in fp64.

    It needs the trace's "resid".
    """
    stack, head = loaded.transformer.stack, loaded.transformer.head
    assert isinstance(head, TokenHead)
    last = trace.resid[stack.config.name, stack.config.layers][at].double()  # [D]
    direction = _direction(head, answer) * (head.scale or 1.0)  # [D]
    norm = stack.final_norm
    gain, eps = getattr(norm, "gain", None), getattr(norm, "eps", None)
    if isinstance(gain, Tensor) and isinstance(eps, float):
        direction = (
            direction * gain.double() * _scale(last, eps, centred=isinstance(stack.config.norm, LayerNorm))
        )
    if isinstance(stack.config.norm, LayerNorm) and stack.config.final_norm:
        # (x − mean x)·d = x·(d − mean d)
        direction = direction - direction.mean()
    return lambda x: x.double() @ direction


def constant(loaded: LoadedModel, answer: int) -> float:
    """What the biases of final norm and unembedding add to a token's logit, over the mean logit."""
    head, total = loaded.transformer.head, 0.0
    assert isinstance(head, TokenHead)
    if isinstance(bias := getattr(loaded.transformer.stack.final_norm, "bias", None), Tensor):
        total += (_direction(head, answer) * (head.scale or 1.0) @ bias.double()).item()
    if head.projection.bias is not None:
        total += over_mean(head.projection.bias, answer)
    return total


def _direction(head: TokenHead, answer: int) -> Tensor:
    weights = head.projection.weight
    return weights[answer].double() - weights.mean(dim=0, dtype=torch.float64)  # [D]


def _scale(x: Tensor, eps: float, *, centred: bool) -> Tensor:
    square = x.var(correction=0) if centred else x.square().mean()
    return (square + eps).rsqrt()
