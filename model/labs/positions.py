"""Sinusoidal positions: waves, the whole matrix, wavelengths, dot products, and the rotation by k."""

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.positions import Positions
from model.labs.result import Axis, Chart, Heatmap, Line, Result, Series
from model.labs.sinusoid import Sinusoid, checks
from model.labs.words import counted, one_of, signed

# What pictures show at most.
ROWS, COLUMNS, POINTS, TURNED = 128, 256, 512, 64


def run(parameters: Positions, _bench: Bench) -> Result:
    """Every series of the sinusoidal positions. Raises InputError for what is no wave or no position."""
    _refuse(parameters)
    wave, pair = Sinusoid(parameters.d_model, parameters.base), parameters.pair
    table = wave.at(0, parameters.length)  # [T, D]
    series: list[Series] = [
        _waves(table, wave, pair),
        _matrix(table),
        _wavelengths(wave, pair),
        _dots(wave, parameters),
        _rotated(wave, parameters),
    ]
    found = checks(wave, parameters.length, pair, parameters.offset)
    limits = {"pair": parameters.d_model // 2 - 1}
    return Result(series, found, _facts(wave, parameters, pair), _notes(parameters), limits)


def _refuse(parameters: Positions) -> None:
    width, end = parameters.d_model, parameters.position + parameters.offset
    if width % 2:
        raise InputError(
            f"d_model is {width}, but every wave takes two dimensions, one for its sine and one for its "
            "cosine: choose an even width."
        )
    if parameters.pair >= width // 2:
        raise InputError(
            f"There is no pair {parameters.pair}: {counted(width, 'dimension')} make "
            f"{counted(width // 2, 'pair')}; {one_of(width // 2)}."
        )
    if end < 0:
        raise InputError(
            f"{counted(-parameters.offset, 'step')} back from position {parameters.position} is "
            f"{signed(end)}, but positions begin at 0: choose an offset of {signed(-parameters.position)} "
            "or more."
        )


def _waves(table: Tensor, wave: Sinusoid, pair: int) -> Chart:
    shown = table[:POINTS]
    positions = torch.arange(len(shown))
    fine = torch.linspace(0, len(shown) - 1, POINTS, dtype=torch.float64)
    lines = [
        Line("sine", positions, shown[:, 2 * pair]),
        Line("cosine", positions, shown[:, 2 * pair + 1]),
        Line("sine between positions", fine, (fine * wave.speeds[pair]).sin(), "theory"),
        Line("cosine between positions", fine, (fine * wave.speeds[pair]).cos(), "theory"),
    ]
    title = f"Dimensions {2 * pair} and {2 * pair + 1}: one wave, a quarter of a turn apart"
    return Chart("waves", title, Axis("position"), Axis("value"), lines)


def _matrix(table: Tensor) -> Heatmap:
    shown, (T, D) = table[:ROWS, :COLUMNS], table.shape
    part = ""
    if T > ROWS or D > COLUMNS:
        part = f" (the first {min(T, ROWS)} of {T} positions and {min(D, COLUMNS)} of {D} dimensions)"
    return Heatmap(
        "matrix", f"The encoding of every position, a row each{part}", Axis("dimension"), Axis("position"),
        torch.arange(shown.shape[1]), torch.arange(shown.shape[0]), shown, "value", diverging=True,
    )  # fmt: skip


def _wavelengths(wave: Sinusoid, pair: int) -> Chart:
    pairs = list(range(wave.width // 2))
    expected = [2 * torch.pi / speed for speed in wave.speeds]
    lines = [
        Line("measured between neighbours", pairs, wave.wavelengths),
        Line("2π · base^(2i/d)", pairs, expected, "theory"),
        Line(f"pair {pair}, the chosen one", [pair], wave.wavelengths[pair : pair + 1]),
    ]
    title = "Wavelength of each pair of dimensions"
    return Chart("wavelengths", title, Axis("pair i"), Axis("wavelength, in positions", log=True), lines)


def _dots(wave: Sinusoid, parameters: Positions) -> Chart:
    start, reach = parameters.position, min(parameters.length - 1, POINTS // 2 - 1)
    steps = list(range(max(-reach, -start), reach + 1))  # no position is less than 0
    dots = wave.at(start + steps[0], len(steps)) @ wave.at(start, 1)[0]  # [steps]
    lines = [
        Line(f"PE({start}) · PE({start} + k)", steps, dots),
        Line("Σ cos(k ω)", steps, [wave.dot(step) for step in steps], "theory"),
    ]
    return Chart(
        "dots", "Dot product by distance", Axis("distance k, in positions"), Axis("dot product"), lines
    )


def _rotated(wave: Sinusoid, parameters: Positions) -> Heatmap:
    start, step = parameters.position, parameters.offset
    here, there = wave.at(start, 1)[0], wave.at(start + step, 1)[0]  # [D]
    shown = min(wave.width, TURNED)
    rows = torch.stack((here, wave.turned(here, step), there))[:, :shown]  # [3, shown]
    names = [f"PE({start})", f"PE({start}) turned by {counted(step, 'step')}", f"PE({start + step})"]
    part = f", the first {shown} of {wave.width} dimensions" if shown < wave.width else ""
    title = f"From position {start} to {start + step} by a rotation{part}"
    return Heatmap(
        "rotation", title, Axis("dimension"), Axis(""), torch.arange(shown), names, rows, "value",
        diverging=True,
    )  # fmt: skip


def _facts(wave: Sinusoid, parameters: Positions, pair: int) -> dict[str, object]:
    start, end = parameters.position, parameters.position + parameters.offset
    here, there = wave.at(start, 1)[0], wave.at(end, 1)[0]  # [D]
    return {
        "d_model": wave.width, "pairs": wave.width // 2, "base": wave.base, "positions": parameters.length,
        "position": start, "offset": parameters.offset, "end": end, "pair": pair,
        "wavelength": wave.wavelengths[pair], "shortest": wave.wavelengths[0],
        "longest": wave.wavelengths[-1],
        "waves_repeat": parameters.length > wave.wavelengths[-1].item(),
        "turns": parameters.length / wave.wavelengths[-1].item(),
        "norm2": here.square().sum(), "half": wave.width / 2,
        "dot": here @ there, "dot_expected": wave.dot(parameters.offset),
        "rotation_off": (wave.turned(here, parameters.offset) - there).abs().max(),
    }  # fmt: skip


def _notes(parameters: Positions) -> list[str]:
    if parameters.length > POINTS // 2:
        return [f"Curves show at most {POINTS} points; the checks use every position."]
    return []
