"""Sinusoidal positions: waves, the whole matrix, wavelengths, dot products, and the rotation by k."""

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.positions import Positions
from model.labs.result import Axis, Chart, Heatmap, Line, Result, Series
from model.labs.sinusoid import Sinusoid, checks
from model.labs.words import counted, signed, span

# What pictures show at most.
ROWS, COLUMNS, POINTS = 128, 256, 512


def run(parameters: Positions, _bench: Bench) -> Result:
    """Every series of the sinusoidal positions. Raises InputError for an odd width."""
    _refuse(parameters)
    wave = Sinusoid(parameters.d_model, parameters.base)
    pair = min(parameters.pair, parameters.d_model // 2 - 1)
    table = wave.at(0, parameters.length)  # [T, D]
    series: list[Series] = [
        _waves(table, wave, pair),
        _matrix(table),
        _wavelengths(wave),
        _dots(wave, parameters),
        _rotated(wave, parameters),
    ]
    found = checks(wave, parameters.length, pair, parameters.offset)
    limits = {"pair": parameters.d_model // 2 - 1}
    return Result(series, found, _facts(wave, parameters, pair), _notes(parameters, pair), limits)


def _refuse(parameters: Positions) -> None:
    width = parameters.d_model
    if width % 2:
        raise InputError(
            f"d_model is {width}, but every wave takes two dimensions, one for its sine and one for its "
            "cosine: choose an even width."
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
    shown = table[:ROWS, :COLUMNS]
    return Heatmap(
        "matrix", "The encoding of every position, a row each", Axis("dimension"), Axis("position"),
        torch.arange(shown.shape[1]), torch.arange(shown.shape[0]), shown, "value", diverging=True,
    )  # fmt: skip


def _wavelengths(wave: Sinusoid) -> Chart:
    pairs = list(range(wave.width // 2))
    expected = [2 * torch.pi / speed for speed in wave.speeds]
    lines = [
        Line("measured between neighbours", pairs, wave.wavelengths),
        Line("2π · base^(2i/d)", pairs, expected, "theory"),
    ]
    title = "Wavelength of each pair of dimensions"
    return Chart("wavelengths", title, Axis("pair i"), Axis("wavelength, in positions", log=True), lines)


def _dots(wave: Sinusoid, parameters: Positions) -> Chart:
    reach = min(parameters.length - 1, POINTS // 2 - 1)
    steps, start = list(range(-reach, reach + 1)), parameters.position
    dots = wave.at(start - reach, len(steps)) @ wave.at(start, 1)[0]  # [steps]
    lines = [
        Line(f"PE({start}) · PE({start} + k)", steps, dots),
        Line("Σ cos(k ω)", steps, [wave.dot(step) for step in steps], "theory"),
    ]
    return Chart(
        "dots", "Dot product by distance", Axis("distance k, in positions"), Axis("dot product"), lines
    )


def _rotated(wave: Sinusoid, parameters: Positions) -> Chart:
    start, step = parameters.position, parameters.offset
    here, there = wave.at(start, 1)[0], wave.at(start + step, 1)[0]  # [D]
    dimensions = torch.arange(min(wave.width, POINTS))
    turned = f"PE({start}) turned by {counted(step, 'step')}"
    lines = [
        Line(f"PE({start})", dimensions, here[:POINTS]),
        Line(f"PE({signed(start + step)})", dimensions, there[:POINTS]),
        Line(turned, dimensions, wave.turned(here, step)[:POINTS], "theory"),
    ]
    title = f"From position {start} to {signed(start + step)} by a rotation"
    return Chart("rotation", title, Axis("dimension"), Axis("value"), lines)


def _facts(wave: Sinusoid, parameters: Positions, pair: int) -> dict[str, object]:
    start, end = parameters.position, parameters.position + parameters.offset
    here, there = wave.at(start, 1)[0], wave.at(end, 1)[0]  # [D]
    return {
        "d_model": wave.width, "pairs": wave.width // 2, "base": wave.base, "positions": parameters.length,
        "position": start, "offset": parameters.offset, "end": end, "pair": pair,
        "wavelength": wave.wavelengths[pair], "shortest": wave.wavelengths[0],
        "longest": wave.wavelengths[-1],
        "turns": parameters.length / wave.wavelengths[-1].item(),
        "norm2": here.square().sum(), "half": wave.width / 2,
        "dot": here @ there, "dot_expected": wave.dot(parameters.offset),
        "rotation_off": (wave.turned(here, parameters.offset) - there).abs().max(),
    }  # fmt: skip


def _notes(parameters: Positions, pair: int) -> list[str]:
    T, D = parameters.length, parameters.d_model
    notes = []
    if pair != parameters.pair:
        notes.append(
            f"{counted(D, 'dimension')} make pairs {span(pair + 1)}: {pair} is shown, not {parameters.pair}."
        )
    if T > ROWS or D > COLUMNS:
        shown = f"the first {min(T, ROWS)} of {T} positions and the first {min(D, COLUMNS)} of {D} dimensions"
        notes.append(f"The picture of the matrix shows {shown}.")
    if T > POINTS or D > POINTS or T > POINTS // 2:
        notes.append(f"Curves show at most {POINTS} points; the checks use every position.")
    return notes
