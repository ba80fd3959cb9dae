"""`attention-atlas lab NAME`: the experiments of the Learn pages, with their parameters as options."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from app.lab_words import in_words
from app.refusals import unusable
from app.settings import Settings, load_settings
from model.errors import InputError
from model.labs.catalogue import LABS, Lab, no_lab

# 1 is an error and 2 a command line that cannot be read: a claim that fails is neither.
FAILS = 3
# Longer defaults, such as a whole configuration, are cut in the help.
DEFAULT = 60
EXITS = f"Exits with {FAILS} where a check fails."


class _Labs(TyperGroup):
    """Answers the name of a lab that there is not with those that there are."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names."""
        if args and not args[0].startswith("-") and args[0] not in LABS:
            raise no_lab(args[0])
        return super().resolve_command(ctx, args)


group = typer.Typer(
    cls=_Labs, help=f"Run an experiment about one claim, as the Learn pages do. {EXITS}", no_args_is_help=True
)


@group.callback(help=group.info.help)
def labs() -> None:
    """Run an experiment about one claim."""


def _command(lab: Lab) -> Callable[..., None]:
    """A function whose options are the lab's parameters: typer reads them from its signature."""
    schemas: dict[str, dict[str, Any]] = lab.parameters.model_json_schema()["properties"]
    by_file = [name for name, schema in schemas.items() if schema.get("file")]

    def run(*, as_json: bool, file: Path | None = None, **given: str | bool | None) -> None:
        values = {name: _value(text, schemas[name]) for name, text in given.items() if text is not None}
        if file is not None:
            values |= dict.fromkeys(by_file, _content(file))
        _print(lab, values, as_json=as_json)

    printed = Annotated[bool, typer.Option("--json", help="Print what the API answers.")]
    options = {
        name: Annotated[_kind(schema) | None, _option(name, schema)] for name, schema in schemas.items()
    }
    if by_file:
        about = f"a file whose content is --{by_file[0]}"
        options["file"] = Annotated[Path | None, typer.Option("--file", help=about, metavar="PATH")]
    run.__annotations__ = {**options, "as_json": printed}
    run.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        *(_keyword(name, option, None) for name, option in options.items()),
        _keyword("as_json", printed, False),  # noqa: FBT003 -- a default, not an argument
    ])  # fmt: skip
    return run


def _keyword(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _kind(schema: dict[str, Any]) -> Any:
    return bool if schema.get("type") == "boolean" else str


def _option(name: str, schema: dict[str, Any]) -> Any:
    word = name.replace("_", "-")
    flags = f"--{word}/--no-{word}" if schema.get("type") == "boolean" else f"--{word}"
    about = [schema.get("description", ""), _bounds(schema), _default(schema.get("default"))]
    metavar = None if schema.get("type") == "boolean" else _metavar(schema)
    return typer.Option(flags, help=" ".join(filter(None, about)), metavar=metavar, show_default=False)


def _bounds(schema: dict[str, Any]) -> str:
    """The least and the largest value; a text's longest."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"[{low} to {high}]"
    longest = schema.get("maxLength")
    return "" if longest is None else f"[at most {longest} characters]"


def _default(default: object) -> str:
    """The default on one line, a long one cut."""
    if default is None:
        return ""
    match default:
        case bool():
            shown = "on" if default else "off"
        case list():
            shown = ",".join(map(str, default))
        case _:
            shown = " ".join(str(default).split())
    return f"[default: {shown if len(shown) <= DEFAULT else shown[: DEFAULT - 1] + '…'}]"


def _metavar(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    kind = schema.get("type", "value")
    return "TEXT" if kind == "string" else str(kind).upper()


def _content(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise InputError(f"--file {file} cannot be read ({reason}): name a text file.") from error


def _value(text: str | bool, schema: dict[str, Any]) -> object:  # noqa: FBT001 -- what a flag gives
    """Text as the JSON value that a schema asks for, a list written with commas; else it stays a text."""
    if isinstance(text, bool) or schema.get("type") == "string":
        return text
    many = schema.get("type") == "array"
    try:
        return json.loads(f"[{text}]" if many else text)
    except ValueError:
        return text.split(",") if many else text


def _print(lab: Lab, given: dict[str, object], *, as_json: bool) -> None:
    try:
        parameters = lab.parameters.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = (
            "".join(f"--{str(part).replace('_', '-')} " for part in first["loc"][:1])
            or "The lab's parameters "
        )
        raise InputError(unusable(f"{where}cannot be used", first, lab.parameters)) from error
    # Imported here because it brings torch in, which `--help` need not wait for.
    from app.services.labs import Labs  # noqa: PLC0415
    from model.devices import choose_device  # noqa: PLC0415

    settings = load_settings()
    labs = Labs(lambda model_id: _load(model_id, settings), choose_device(settings.device))
    found = labs.run(lab, parameters)
    typer.echo(json.dumps(found, ensure_ascii=False, allow_nan=False) if as_json else in_words(found))
    checks: Any = found["checks"]
    if not all(check["holds"] for check in checks):
        raise typer.Exit(FAILS)


def _load(model_id: str, settings: Settings) -> Any:
    from app.cli_trace import fetched  # noqa: PLC0415
    from app.services.start import load  # noqa: PLC0415

    path = Path(model_id)
    return load(path if path.exists() else fetched(model_id, settings)[0], settings)


for _lab in LABS.values():
    group.command(_lab.name, help=_lab.question, epilog=EXITS)(_command(_lab))
