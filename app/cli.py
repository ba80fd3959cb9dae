"""The command line: `attention-atlas serve | models | trace | lab`, without torch: help appears at once."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from app import __version__, cli_lab, cli_models, cli_serve, cli_trace
from model.errors import AtlasError


class Doors(TyperGroup):
    """Turns an error that a user can meet into its one sentence and exit status 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except AtlasError as error:
            typer.echo(f"attention-atlas: {error.detail}", err=True)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Doors,
    help="See attention in real Transformers: every layer, every head, every number.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Brackets in a help text are brackets, not markup.
    rich_markup_mode=None,
)
app.command("serve")(cli_serve.serve)
app.command("trace")(cli_trace.trace)
app.add_typer(cli_models.app, name="models")
app.add_typer(cli_lab.group, name="lab")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- the signature typer calls
    if wanted:
        typer.echo(f"attention-atlas {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """See attention in real Transformers: every layer, every head, every number."""


def main() -> None:
    """The entry point of the installed command."""
    app()
