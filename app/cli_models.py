"""`attention-atlas models`: the built-in models on this machine."""

import sys
from typing import Annotated

import typer

from app.services.model_sources import resolve
from app.settings import Settings, load_settings
from app.terminal import ProgressLine
from model import zoo
from model.errors import UnknownModel
from model.fetching import Listener

app = typer.Typer(help="List, fetch, verify and remove models.", no_args_is_help=True, rich_markup_mode=None)

BuiltIns = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Built-in models; all if none.")
]


@app.command("list")
def list_models() -> None:
    """Show the built-in models and which of them are on this machine."""
    settings = load_settings()
    rows = [("id", "title", "licence", "size", "state")]
    for entry in zoo.entries().values():
        state = "absent" if zoo.local(entry, settings.cache_dir) is None else "here"
        rows.append((entry.id, entry.title, entry.licence, zoo.megabytes(entry.bytes), state))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo(f"kept in {settings.cache_dir}")


@app.command()
def fetch(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Built-in models or Hub ids; all built-ins if none."),
    ] = None,
) -> None:
    """Bring models to this machine; what is here already is left alone."""
    settings = load_settings()
    for model_id in ids or zoo.entries():
        _fetch_one(model_id, settings)


@app.command()
def verify(ids: BuiltIns = None) -> None:
    """Check every byte of fetched models against the pinned checksums; exit status 1 on any problem."""
    settings = load_settings()
    problems = 0
    for entry in _chosen(ids):
        found = zoo.verify(entry, settings.cache_dir)
        problems += len(found)
        if not found:
            typer.echo(
                f"{entry.id}: every byte is right ({len(entry.files)} files, {zoo.megabytes(entry.bytes)})"
            )
        for problem in found:
            typer.echo(problem, err=True)
    if problems:
        typer.echo("Fetch again with `attention-atlas models remove ID` and `models fetch ID`.", err=True)
        raise typer.Exit(1)


@app.command()
def remove(ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Built-in models.")]) -> None:
    """Delete models from this machine's cache."""
    settings = load_settings()
    for entry in _chosen(ids):
        existed = zoo.remove(entry, settings.cache_dir)
        typer.echo(f"{entry.id}: {'removed' if existed else 'was not here'}")


def _fetch_one(model_id: str, settings: Settings) -> None:
    source = resolve(model_id, None, settings)
    present = source.present()
    if present is not None:
        typer.echo(f"{model_id}: already here, {present.path}")
        return
    line = ProgressLine(model_id, sys.stderr)
    present = source.fetch(Listener(line.progress, line.say))
    line.say("done")
    typer.echo(f"{model_id}: fetched, {present.path}")


def _chosen(ids: list[str] | None) -> list[zoo.ZooEntry]:
    entries = zoo.entries()
    for model_id in ids or []:
        if model_id not in entries:
            raise UnknownModel(f"{model_id!r} is no built-in model; choose from {', '.join(entries)}.")
    return [entries[model_id] for model_id in ids or entries]
