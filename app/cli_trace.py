"""`attention-atlas trace`: run one text, or exactly these ids, and write down what happened inside."""

import base64
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from app.refusals import unusable
from app.schemas import TraceRequest
from app.settings import Settings, load_settings
from model import zoo
from model.errors import InputError

if TYPE_CHECKING:
    from app.services.runs import ModelName
    from model.loading import LoadedModel


def trace(  # noqa: PLR0913 -- typer reads the options from the parameters
    model: Annotated[
        str, typer.Argument(help="A built-in name, a Hub id, local:<root>/<name>, a folder, or a .gguf file.")
    ],
    text: Annotated[str | None, typer.Argument(help="The text; - reads it from standard input.")] = None,
    *,
    pair: Annotated[str | None, typer.Option(help="A second text, for models that read pairs.")] = None,
    ids: Annotated[
        str | None,
        typer.Option(help="Run exactly these token ids, such as 101,2009,102; needs no tokenizer."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The decoder's text, beside an encoder; else the model writes it.")
    ] = None,
    target_ids: Annotated[str | None, typer.Option(help="The decoder's token ids.")] = None,
    audio: Annotated[Path | None, typer.Option(help="A WAV or FLAC file, for speech models.")] = None,
    recording: Annotated[
        str | None, typer.Option(help="A sound that comes along instead, such as amiable.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="A JSON file with a list of interventions.")] = None,
    record: Annotated[
        list[str] | None, typer.Option(help="Also keep, such as resid; may be repeated.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    dtype: Annotated[str | None, typer.Option(help="auto, float32, float64, bfloat16 or float16.")] = None,
    npz: Annotated[Path | None, typer.Option(help="Write all arrays to this .npz file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that opens without a server.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what POST /api/traces answers.")] = False,
) -> None:
    """Run a model once and keep its attention.

    The .npz holds `ids`, `tokens`, `attention/<site>` [H, T, S] float32 (float64 with that dtype); for models
    that predict tokens `logits` [T, V]; `final/<stack>` [T, D]; beside an encoder `source_ids` and
    `source_tokens`; and what --record asks for as `<what>/<stack>/<layer>`: resid [T, D], where layer 0 is
    the embeddings and layer L the last block's output before any final norm, mid, attn_out, cross_out,
    ffn_out, head_out [H, T, K], ffn_pre and ffn_act [T, F], norms [T, 2] (mean, root mean square of each
    norm's input).
    """
    if not (npz or html or as_json):
        raise InputError("Say where the trace should go: --npz FILE, --html FILE or --json.")
    settings = load_settings(device=device, dtype=dtype)
    request = _request(
        model=model,
        text=sys.stdin.read() if text == "-" else text,
        text_pair=pair,
        ids=None if ids is None else _ids(ids, "--ids"),
        target=target,
        target_ids=None if target_ids is None else _ids(target_ids, "--target-ids"),
        audio=None if audio is None else _sound(audio),
        recording=recording,
        plan=[] if plan is None else _plan(plan),
        record=record or [],
    )
    loaded, name = _load(model, settings)
    # Imported here because it brings torch in, which `--help` need not wait for.
    from app import saved  # noqa: PLC0415
    from app.services import export  # noqa: PLC0415

    opened = export.open_whole(loaded, request, name)
    try:
        if html is not None:
            saved.write_html(opened, html)
        if npz is not None:
            export.write_npz(opened, npz)
    except OSError as error:
        raise InputError(
            f"{error.filename} cannot be written: {error.strerror}. Choose another file."
        ) from error
    if as_json:
        typer.echo(json.dumps(opened.as_json(), ensure_ascii=False))
    for notice in opened.notices:
        typer.echo(f"note: {notice}", err=True)


def _request(**fields: object) -> TraceRequest:
    try:
        return TraceRequest.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(unusable(f"The {first['loc'][0]} cannot be used", first, TraceRequest)) from error


def _load(model: str, settings: Settings) -> "tuple[LoadedModel, ModelName | None]":
    """The model and its name; a file or folder has none, and goes behind a built-in model of its name."""
    from app.services.start import load  # noqa: PLC0415

    path = Path(model)
    if model not in zoo.entries() and path.exists():
        return load(path, settings), None
    path, name = fetched(model, settings)
    return load(path, settings), name


def fetched(model: str, settings: Settings) -> "tuple[Path, ModelName]":
    """Where a model lies, fetched if it has to be, and its name. Raises UnknownModel or FetchError."""
    from app.services.model_sources import resolve  # noqa: PLC0415
    from app.services.runs import ModelName  # noqa: PLC0415
    from app.terminal import ProgressLine  # noqa: PLC0415
    from model.fetching import Listener  # noqa: PLC0415

    source = resolve(model, None, settings)
    present = source.present()
    if present is None:
        line = ProgressLine(model, sys.stderr)
        present = source.fetch(Listener(line.progress, line.say))
    return present.path, ModelName(source.card.title, present.revision)


def _sound(path: Path) -> str:
    try:
        return base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _ids(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"{option} {text} is not a list of whole numbers: write them with commas, such as 101,2009,102."
        ) from error


def _plan(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"The plan {path} is not a readable JSON file: {error}.") from error
