"""Opens a checkpoint: a folder with config.json and safetensors, or one GGUF file. Code is never loaded."""

import json
from dataclasses import replace
from pathlib import Path

from model.checkpoints import bert, llama
from model.checkpoints.attributes import Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.gguf import GGUF
from model.checkpoints.source import Safetensors
from model.checkpoints.tokenizer_files import load_tokenizer
from model.checkpoints.tokenizer_gguf import gguf_tokenizer
from model.errors import CheckpointError, ConfigError
from model.text import TextEncoder

FAMILIES = ("bert", "llama")


def open_checkpoint(path: Path) -> tuple[Checkpoint, TextEncoder | None]:
    """The checkpoint at `path` and its tokenizer: None where there is none, or none that is implemented.

    Raises CheckpointError or ConfigError, naming the file and what in it was not understood.
    """
    if path.is_dir():
        return _check_depth(_open_folder(path)), load_tokenizer(path)
    if path.suffix == ".gguf" and path.is_file():
        return _open_gguf(path)
    raise CheckpointError(
        f"{path.name} is neither a folder with a config.json nor a .gguf file: give one of these."
    )


def _open_folder(folder: Path) -> Checkpoint:
    stated = _read_config(folder / "config.json")
    family = stated.get("model_type")
    attributes = Attributes(stated, "config.json")
    names = stated.get("architectures")
    architectures = [str(name) for name in names] if isinstance(names, list) else []
    if family not in FAMILIES:
        raise ConfigError(
            f"config.json says model_type {family!r}, which is not implemented: {', '.join(FAMILIES)} are."
        )
    source = Safetensors(folder)
    if family == "bert":
        checkpoint = bert.read(attributes, source, architectures)
    else:
        checkpoint = llama.read(attributes, source)
    attributes.finish()
    return checkpoint


def _open_gguf(file: Path) -> tuple[Checkpoint, TextEncoder | None]:
    opened = GGUF(file)
    architecture = opened.fields.get("general.architecture")
    if architecture != "llama":
        raise ConfigError(
            f"{file.name} holds a model of architecture {architecture!r}, which is not implemented: llama is."
        )
    checkpoint = _check_depth(llama.read_gguf(opened))
    try:
        return checkpoint, gguf_tokenizer(opened.fields)
    except ConfigError as error:
        return replace(checkpoint, notices=(*checkpoint.notices, error.detail)), None


def _check_depth(checkpoint: Checkpoint) -> Checkpoint:
    # Before a module is built for each layer that a damaged file claims to have.
    layers, tensors = checkpoint.config.stack.layers, len(checkpoint.source.names)
    if layers > tensors:
        raise CheckpointError(
            f"{checkpoint.source.origin} claims {layers} layers, but holds only {tensors} tensors."
        )
    return checkpoint


def _read_config(file: Path) -> dict[str, object]:
    try:
        stated = json.loads(file.read_text("utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{file.parent.name} has no config.json: a model folder needs one.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file.parent.name}'s config.json is not readable JSON: {error}.") from error
    if not isinstance(stated, dict):
        raise CheckpointError(f"{file.parent.name}'s config.json is not a JSON object.")
    return stated
