"""A learned table of positions (Gehring et al. 2017; Devlin et al. 2019): what training made of it."""

import torch
from torch import Tensor

from model.config import Learned
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.positions import LearnedPositions
from model.labs.position_table import Table, peaks, slow_share, spectrum
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result, Series
from model.labs.table_checks import table_checks
from model.loading import LoadedModel

ROWS, COLUMNS, COMPONENTS = 128, 256, 3


def run(parameters: LearnedPositions, bench: Bench) -> Result:
    """Table, similarity, principal components and periods. Raises InputError without a learned table."""
    loaded = bench.model(parameters.model)
    table = _read(loaded, parameters)
    generator = torch.Generator().manual_seed(parameters.seed)
    mixed = spectrum(table.centred[torch.randperm(len(table.centred), generator=generator)])
    periods = _periods(table, mixed)
    series: list[Series] = [
        _picture(table, parameters.first), _similarity(table), _from_one(table, parameters.position),
        _components(table, parameters.first), periods,
    ]  # fmt: skip
    facts = _facts(table, parameters)
    facts["side"] = "decoder" if loaded.config.encoder is not None else ""
    checks = [*_order_checks(table, mixed), *table_checks(table, loaded, periods)]
    return Result(series, checks, facts, limits=_limits(table))


def _limits(table: Table) -> dict[str, int]:
    return {"position": len(table.rows) - 1, "first": len(table.rows) - 1}


def _read(loaded: LoadedModel, parameters: LearnedPositions) -> Table:
    place, embedding = loaded.config.stack.position, loaded.transformer.embeddings.positions
    if not isinstance(place, Learned) or embedding is None:
        raise InputError(
            f"{parameters.model} has no learned table of positions: choose minilm or another that has one."
        )
    rows = embedding.weight.detach()[place.offset :].double().cpu()  # [N, D]
    for name, given in (("position", parameters.position), ("first", parameters.first)):
        if given >= len(rows):
            raise InputError(
                f"{name} is {given}, but the table has positions 0 to {len(rows) - 1}: choose one of them."
            )
    if len(rows) - parameters.leave_out < 4:
        raise InputError(
            f"The table has {len(rows)} rows: leave out fewer, at least 4 must be left to compare."
        )
    return Table(rows, parameters.leave_out)


def _picture(table: Table, first: int) -> Heatmap:
    shown, (N, D) = (table.rows - table.mean)[first : first + ROWS, :COLUMNS], table.rows.shape
    part = ""
    if len(shown) < N or D > COLUMNS:
        rows = _from_to(first, first + len(shown) - 1)
        part = f" ({rows} of {N}, {min(D, COLUMNS)} of {D} dimensions)"
    return Heatmap(
        "table", f"The learned table less its mean, a row a position{part}", Axis("dimension"),
        Axis("position"),
        torch.arange(shown.shape[1]), torch.arange(first, first + len(shown)), shown, "value", diverging=True,
    )  # fmt: skip


def _from_to(first: int, last: int) -> str:
    return f"position {first}" if first == last else f"positions {first} to {last}"


def _similarity(table: Table) -> Heatmap:
    step = -(-len(table.rows) // ROWS)
    places = torch.arange(0, len(table.rows), step)
    unit = table.unit[places]
    part = f" (one position in {step})" if step > 1 else ""
    return Heatmap(
        "similarity", f"How alike two positions are{part}", Axis("position"), Axis("position"),
        places, places, unit @ unit.T, "cosine similarity", diverging=True,
    )  # fmt: skip


def _from_one(table: Table, position: int) -> Chart:
    line = Line(f"position {position}", torch.arange(len(table.rows)), table.unit @ table.unit[position])
    title = f"Position {position} against every other"
    return Chart("one", title, Axis("position"), Axis("cosine similarity"), [line])


def _components(table: Table, first: int) -> Chart:
    along, share = table.components
    start = max(first, table.left_out)
    places = torch.arange(start, min(start + ROWS, len(table.rows)))
    lines = [
        Line(
            f"component {i + 1} ({100 * share[i].item():.3g} % of the variance)",
            places,
            along[places - table.left_out, i],
        )
        for i in range(min(COMPONENTS, along.shape[1]))
    ]
    title = f"{_from_to(start, int(places[-1])).capitalize()} along the first principal components"
    return Chart("components", title, Axis("position"), Axis("coordinate"), lines)


def _periods(table: Table, mixed: Tensor) -> Chart:
    turns = torch.arange(1, len(table.spectrum))
    periods = len(table.centred) / turns
    lines = [
        Line("the table", periods, table.spectrum[1:]),
        Line("the same rows in random order", periods, mixed[1:]),
    ]
    first, last = table.left_out, len(table.rows) - 1
    title = f"Periods along positions {first} to {last}, by Fourier transform"
    return Chart(
        "periods",
        title,
        Axis("period, in positions", log=True),
        Axis("share of the variance", log=True),
        lines,
    )


def _order_checks(table: Table, mixed: Tensor) -> list[Check]:
    """What order has left in the table, against the same rows without order."""
    neighbours = (table.unit[1:] * table.unit[:-1]).sum(-1)[table.left_out :].mean().item()
    any_two = table.unit[table.left_out :].mean(0).square().sum().item()
    slow, expected = slow_share(table.spectrum), slow_share(mixed)
    return [
        Check("mean cosine of neighbours, against any two", any_two, neighbours, relation=">=",
              origin="measured", about="one"),
        Check("share of long periods, against rows in random order", expected, slow, relation=">=",
              origin="measured", about="periods"),
    ]  # fmt: skip


def _facts(table: Table, parameters: LearnedPositions) -> dict[str, object]:
    share, power = table.components[1], table.spectrum[1:]
    order = peaks(power)
    similarity = (table.unit @ table.unit[parameters.position]).clone()
    similarity[parameters.position] = -2
    nearest = int(similarity.argmax())
    return {
        "rows": len(table.rows), "width": table.rows.shape[1], "position": parameters.position,
        "nearest": nearest, "nearest_cosine": similarity[nearest],
        "first_three": share[:COMPONENTS].sum(), "components_for_90": int((share.cumsum(0) < 0.9).sum()) + 1,
        "waves": len(order) > 0, "flat": len(order) == 0,
        "last": len(table.rows) - 1, "trend_share": power[0],
        "slow_share": slow_share(table.spectrum), "left_out": table.left_out,
        "periods": [
            {"period, in positions": len(table.centred) / (turn + 1), "share of the variance": power[turn]}
            for turn in order.tolist()
        ],
        "model": parameters.model,
    }  # fmt: skip
