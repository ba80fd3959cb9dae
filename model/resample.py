"""Sound at another rate: an ideal low-pass filter under a Kaiser window (Smith and Gossett 1984)."""

import math

import torch
from torch import Tensor

# Zero crossings of the sinc on each side, the share of the band that is kept, and the Kaiser window's shape.
_CROSSINGS, _BAND, _BETA = 32, 0.94, 10.0
_CHUNK_VALUES = 2**21


def resample(samples: Tensor, rate: int, wanted: int) -> Tensor:
    """Mono `samples` [N] of `rate` per second as [N · wanted / rate, rounded up] of `wanted` per second.

    What lies above half of either rate is filtered out. Memory grows with N, whatever the two rates.
    """
    common = math.gcd(rate, wanted)
    up, down = wanted // common, rate // common
    if up == down:
        return samples
    cutoff = _BAND * min(1.0, up / down)
    reach = math.ceil(_CROSSINGS / cutoff)
    around = torch.nn.functional.pad(samples, (reach - 1, reach)).unfold(0, 2 * reach, 1)  # [N, taps]
    outputs = torch.arange(-(-len(samples) * up // down))
    # Outputs come to the same places between inputs again and again.
    phases = [(places * down % up) / up for places in _chunks(outputs[:up], reach)]
    kernel = torch.cat([_kernel(between, cutoff, reach).to(samples) for between in phases])  # [up, taps]
    found = [
        (around[places * down // up] * kernel[places % up]).sum(-1) for places in _chunks(outputs, reach)
    ]
    return torch.cat(found)


def _chunks(places: Tensor, reach: int) -> list[Tensor]:
    count = _CHUNK_VALUES // reach + 1
    return [places[start : start + count] for start in range(0, len(places), count)]


def _kernel(between: Tensor, cutoff: float, reach: int) -> Tensor:
    """The filter [P, taps] for outputs `between` two inputs, 0 to 1 [P]; its rows sum to 1."""
    taps = torch.arange(1 - reach, reach + 1, dtype=torch.float64)
    distance = between.double()[:, None] - taps  # [P, taps]
    inside = (1 - (distance / reach) ** 2).clamp(min=0)
    kernel: Tensor = torch.sinc(cutoff * distance) * torch.special.i0(_BETA * inside.sqrt())  # [P, taps]
    return kernel / kernel.sum(-1, keepdim=True)
