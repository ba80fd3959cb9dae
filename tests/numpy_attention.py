"""Attention in fp64 NumPy, one score at a time, from the formula of Vaswani et al. 2017, section 3.2.1."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sees = Callable[[int, int], bool]


def stages(q: Array, k: Array, scales: Sequence[float], sees: Sequence[Sees]) -> dict[str, Array]:
    """Every stage [H, T, S] of q [H, T, K] and k [G, S, K]; `sees[h](i, j)`: whether query i sees key j."""
    heads, queries, keys = len(q), q.shape[1], k.shape[1]
    raw, scaled, masked, weights = (np.zeros((heads, queries, keys)) for _ in range(4))
    for h in range(heads):
        shared = k[h * len(k) // heads]
        for i in range(queries):
            for j in range(keys):
                raw[h, i, j] = float(q[h, i] @ shared[j])
                scaled[h, i, j] = raw[h, i, j] * scales[h]
                masked[h, i, j] = scaled[h, i, j] if sees[h](i, j) else -np.inf
            powers = np.exp(masked[h, i] - masked[h, i].max())
            weights[h, i] = powers / powers.sum()
    return {"raw": raw, "scaled": scaled, "biased": scaled, "masked": masked, "weights": weights}
