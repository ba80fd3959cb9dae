"""T5's buckets: a bucket a distance while it is short, then ranges that grow (Raffel et al. 2020, 2.1)."""

import math
from bisect import bisect_right
from functools import cache

import torch
from torch import Tensor

from model.bias import RelativeBias
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.alibi import T5Buckets
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result
from model.labs.words import counted, signed

SIDE, REACH = 128, 255
# The models take logarithms in fp32, a few roundings of 2^-24 each; nearer than ON_EDGE is on the edge.
FP32, ON_EDGE = 2.0**-22, 1e-12


def run(parameters: T5Buckets, _bench: Bench) -> Result:
    """Which bucket each distance falls into. Raises InputError where the buckets leave no room to grow."""
    _refuse(parameters)
    far = parameters.length - 1
    offsets = torch.arange(-far, far + 1)
    bias = RelativeBias(1, parameters.buckets, parameters.max_distance, both_ways=parameters.both_ways)
    found = bias.bucket(offsets)  # [2T - 1]
    exact = torch.tensor([exact_bucket(parameters, int(offset)) for offset in offsets])
    chart, matrix = _by_offset(parameters, offsets, found, exact), _matrix(bias, parameters.length)
    return Result(
        [chart, matrix],
        _checks(parameters, found, exact),
        _facts(parameters, bias, found),
        _notes(parameters, found, exact),
    )


def exact_bucket(parameters: T5Buckets, offset: int) -> int:
    """The bucket of key - query by the paper's rule, in whole numbers: no logarithm is rounded."""
    buckets, first, distance = parameters.buckets, 0, max(0, -offset)
    if parameters.both_ways:
        buckets //= 2
        first, distance = (buckets if offset > 0 else 0), abs(offset)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    starts = range_starts(exact, buckets - exact, parameters.max_distance)
    return first + exact + bisect_right(starts, distance) - 1


@cache
def range_starts(exact: int, wide: int, farthest: int) -> list[int]:
    """The first distance of each of `wide` ranges: the least one ≥ exact · (farthest/exact)^(step/wide).

    Both sides are raised to the power `wide`, so that no logarithm is rounded.
    """
    starts, distance = [], exact
    for step in range(wide):
        while distance**wide < exact ** (wide - step) * farthest**step:
            distance += 1
        starts.append(distance)
    return starts


def _refuse(parameters: T5Buckets) -> None:
    if parameters.both_ways and parameters.buckets % 2:
        raise InputError(
            f"buckets is {parameters.buckets}, but both directions share them: choose an even number."
        )
    exact = parameters.buckets // (4 if parameters.both_ways else 2)
    if parameters.max_distance <= exact:
        raise InputError(
            f"max_distance is {parameters.max_distance}, but the first {exact} of each direction have "
            "a bucket to themselves: choose a greater max_distance or fewer buckets."
        )


def _by_offset(parameters: T5Buckets, offsets: Tensor, found: Tensor, exact: Tensor) -> Chart:
    near = offsets.abs() <= REACH
    lines = [
        Line("bucket in the models", offsets[near], found[near]),
        Line("bucket by the paper's rule", offsets[near], exact[near], "theory"),
    ]
    ways = "both ways" if parameters.both_ways else "looking back only"
    title = f"{parameters.buckets} buckets, {ways}"
    return Chart("buckets", title, Axis("key − query, in positions"), Axis("bucket"), lines)


def _matrix(bias: RelativeBias, length: int) -> Heatmap:
    places = torch.arange(min(length, SIDE))
    buckets = bias.bucket(places[None] - places[:, None])  # [T, S]
    part = f" (the first {SIDE} of {length} tokens)" if length > SIDE else ""
    return Heatmap(
        "bucket-map",
        f"The bucket of every pair{part}",
        Axis("key"),
        Axis("query"),
        places,
        places,
        buckets,
        "bucket",
    )


def _checks(parameters: T5Buckets, found: Tensor, exact: Tensor) -> list[Check]:
    far = parameters.length - 1
    rounded = torch.tensor([_rounded(parameters, abs(offset)) for offset in range(-far, far + 1)])
    wrong = int(((found != exact) & ~(rounded & ((found - exact).abs() == 1))).sum())
    used = len(set(found.tolist()))
    name = "distances in another bucket than the paper's rule says, but for fp32 rounding"
    return [
        Check(name, 0.0, float(wrong), about="buckets"),
        Check("buckets in use", float(parameters.buckets), float(used), relation="<=", about="buckets"),
    ]


def _rounded(parameters: T5Buckets, distance: int) -> bool:
    """Whether a distance is so near a bucket's edge, but not on it, that fp32 may round it over."""
    buckets = parameters.buckets // (2 if parameters.both_ways else 1)
    exact = buckets // 2
    if distance <= exact or distance >= parameters.max_distance:
        return False
    scale = (buckets - exact) / math.log(parameters.max_distance / exact)
    step = scale * math.log(distance / exact)
    return ON_EDGE < abs(step - round(step)) < FP32 * (step + scale)


def _facts(parameters: T5Buckets, bias: RelativeBias, found: Tensor) -> dict[str, object]:
    bucket = int(bias.bucket(torch.tensor(parameters.distance)))
    reach = torch.arange(-parameters.max_distance - 1, parameters.max_distance + 2)
    shared = reach[bias.bucket(reach) == bucket]
    first, last = int(shared.min()), int(shared.max())
    farther = max(abs(first), abs(last)) > parameters.max_distance
    exact = parameters.buckets // (4 if parameters.both_ways else 2)
    if not parameters.both_ways and bucket == 0:
        words = "the token itself and all keys ahead"
    elif farther:
        words = f"{signed(min(first, last, key=abs))} and all beyond"
    else:
        words = _from_to(first, last)
    return {
        "buckets": parameters.buckets, "max_distance": parameters.max_distance, "exact": exact,
        "used": len(set(found.tolist())), "distance": parameters.distance, "bucket": bucket, "shared": words,
    }  # fmt: skip


def _from_to(first: int, last: int) -> str:
    return f"{signed(first)} alone" if first == last else f"{signed(first)} to {signed(last)}"


def _notes(parameters: T5Buckets, found: Tensor, exact: Tensor) -> list[str]:
    notes = []
    edges = int((found != exact).sum())
    if edges:
        notes.append(
            f"{counted(edges, 'distance')} at a bucket's edge {'falls' if edges == 1 else 'fall'} to the "
            "neighbouring one: trained models take the logarithm in fp32, and so does this one."
        )
    if parameters.length - 1 > REACH:
        notes.append(f"The curve shows distances up to {REACH}; the checks use all of them.")
    return notes
