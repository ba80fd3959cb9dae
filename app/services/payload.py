"""How numbers travel: tensors as .npy bytes, metadata as JSON without NaN or infinity."""

import io
import math
from collections.abc import Mapping

import numpy as np
from torch import Tensor


def npy(tensor: Tensor) -> bytes:
    """The tensor as a .npy file, which `numpy.load` and the page both read."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(tensor.cpu().numpy()), allow_pickle=False)
    return buffer.getvalue()


def finite(answer: Mapping[str, object]) -> dict[str, object]:
    """An answer of nested dicts and lists with None for every number JSON has no word for."""
    return {name: _finite(value) for name, value in answer.items()}


def number(value: float) -> float | None:
    """A JSON number, or None for what JSON has no word for."""
    return value if math.isfinite(value) else None


def numbers(tensor: Tensor) -> list[float | None]:
    """A vector as JSON numbers."""
    return [number(value) for value in tensor.tolist()]


def _finite(value: object) -> object:
    match value:
        case float():
            return number(value)
        case dict():
            return finite(value)
        case list():
            return [_finite(part) for part in value]
        case _:
            return value
