"""The subspace of a model's width that a head reads from, or writes into, and how two of them overlap."""

import torch
from torch import Tensor

from model.attention import Attention
from model.labs.parameters.heads import Projection


def pieces(attention: Attention, projection: Projection) -> Tensor:
    """One head's part of a projection each, as columns in the space of the model's width: [H or G, D, K]."""
    width = attention.config.head_width
    if projection == "output":
        columns = attention.o.weight.float().cpu()  # [D, H · K]
        return columns.reshape(len(columns), -1, width).transpose(0, 1)  # [H, D, K]
    linear = {"queries": attention.q, "keys": attention.k, "values": attention.v}[projection]
    rows = linear.weight.float().cpu()  # [H · K, D]
    return rows.reshape(-1, width, rows.shape[1]).mT  # [H or G, D, K]


def overlaps(columns: Tensor) -> Tensor:
    """Mean squared cosine of the principal angles between column spaces [H, D, K]: [H, H].

    1 where two are the same, 0 where they are orthogonal, min(K, D)/D on average where they are random
    (Björck and Golub 1973).
    """
    bases: Tensor = torch.linalg.qr(columns).Q  # [H, D, min(K, D)]
    heads, _, width = bases.shape
    flat = bases.transpose(1, 2).flatten(0, 1)  # [H · K, D]
    cosines = (flat @ flat.mT).view(heads, width, heads, width)  # [H, K, H, K]
    return cosines.square().sum(dim=(1, 3)) / width  # [H, H]
