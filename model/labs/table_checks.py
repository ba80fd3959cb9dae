"""What is drawn of a table of positions, found once more by another way."""

import copy
import math

import torch
from torch import Tensor

from model.embeddings import Embeddings
from model.labs.position_table import Table, peaks
from model.labs.result import Chart, Check
from model.loading import LoadedModel

# Sums and differences of a few fp32 numbers.
ROUNDING = 2.0**-21


def table_checks(table: Table, loaded: LoadedModel, periods: Chart) -> list[Check]:
    """Rows, principal components and the strongest period, each against a computation of its own."""
    return [_rows(table, loaded), _variance(table), *_strongest(table, periods)]


def _rows(table: Table, loaded: LoadedModel) -> Check:
    """Rows of the table, against what the model's embeddings add where they are told positions."""
    given = added(loaded.transformer.embeddings, len(table.rows))  # [N, D]
    same = given.shape == table.rows.shape
    off = (given - table.rows).abs().max().item() if same else math.nan
    largest = given.abs().max().item()
    # What is added is found as a difference of sums with the token's vector.
    tolerance = max(ROUNDING * (1 + largest), 0.0 if loaded.dtype == "float32" else 0.01 * (1 + largest))
    return Check("rows, against what the model's embeddings add, largest difference", 0.0, off, tolerance)


@torch.inference_mode()
def added(embeddings: Embeddings, count: int) -> Tensor:
    """What positions 0 … count - 1 add to a vector before any norm, by a run with and without: [N, D]."""
    bare = copy.copy(embeddings)
    vars(bare)["_modules"] = {**vars(embeddings)["_modules"], "norm": None, "projection": None}
    device = embeddings.tokens.weight.device
    ids = torch.zeros(1, count, dtype=torch.long, device=device)
    places = torch.arange(count, device=device)[None]
    found: Tensor = bare(ids, None, places) - bare(ids, None, None)  # [1, N, D]
    return found[0].double().cpu()


def _variance(table: Table) -> Check:
    """The first component's share of the variance, against the largest eigenvalue of the covariance."""
    rows = table.rows[table.left_out :]
    covariance = torch.cov(rows.T, correction=0)  # [D, D]
    expected = (torch.linalg.eigvalsh(covariance)[-1] / rows.var(0, correction=0).sum()).item()
    name = "share of component 1, against the largest eigenvalue of the covariance"
    return Check(name, expected, table.components[1][0].item(), 1e-9, about="components")


def _strongest(table: Table, periods: Chart) -> list[Check]:
    """The strongest period's share, against a sum of the rows times one sine and one cosine."""
    drawn = torch.as_tensor(periods.lines[0].y)
    found = peaks(drawn)
    if not len(found):
        return []
    rows = table.rows[table.left_out :]
    turns, N = int(found[0]) + 1, len(rows)
    angle = 2 * math.pi * turns * torch.arange(N, dtype=torch.float64) / N  # [N]
    sums = torch.stack((angle.cos() @ rows, angle.sin() @ rows)).square().sum().item()
    both = 1 if 2 * turns == N else 2
    variance = (rows - rows.mean(0)).square().sum().item()
    name = f"share of period {N / turns:.4g}, against one sine and one cosine"
    return [Check(name, both * sums / (N * variance), drawn[found[0]].item(), 1e-9, about="periods")]
