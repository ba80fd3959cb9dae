"""Opens a checkpoint: a folder with config.json and weights, or one GGUF file. Code is never loaded."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from model.checkpoints import (
    albert,
    bart,
    bert,
    bloom,
    distilbert,
    gemma,
    gpt2,
    gpt_neox,
    llama,
    llama_gguf,
    marian,
    mistral,
    qwen,
    roberta,
    t5,
    whisper,
    whisper_ct2,
)
from model.checkpoints.attributes import Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.ctranslate2 import CTranslate2
from model.checkpoints.gguf import GGUF
from model.checkpoints.pickle_source import PickledTensors
from model.checkpoints.source import Safetensors, Source
from model.checkpoints.tokenizer_files import load_tokenizer, special_ids
from model.checkpoints.tokenizer_gguf import gguf_tokenizer
from model.checkpoints.tokenizer_smiles import smiles_tokenizer
from model.errors import CheckpointError, ConfigError
from model.text import TextEncoder

Read = Callable[[Attributes, Source, Sequence[str]], Checkpoint]
FAMILIES: dict[str, Read] = {
    "albert": albert.read,
    "bart": bart.read,
    "bert": bert.read,
    "bloom": bloom.read,
    "distilbert": distilbert.read,
    "gemma": gemma.read,
    "gemma2": gemma.read_gemma2,
    "gpt2": gpt2.read,
    "gpt_neox": gpt_neox.read,
    "llama": llama.read,
    "marian": marian.read,
    "mistral": mistral.read,
    "qwen2": qwen.read_qwen2,
    "qwen3": qwen.read_qwen3,
    "roberta": roberta.read,
    "t5": t5.read,
    "whisper": whisper.read,
    "xlm-roberta": roberta.read,
}
GGUF_ARCHITECTURES: dict[str, Callable[[GGUF], Checkpoint]] = {
    "llama": llama_gguf.read_llama,
    "qwen2": llama_gguf.read_qwen2,
}
# How to generate and train, which older configurations of every family carry along.
_NO_EFFECT = (
    *("do_sample", "early_stopping", "num_beams", "num_beam_groups", "num_return_sequences", "max_length"),
    *("min_length", "length_penalty", "repetition_penalty", "diversity_penalty", "no_repeat_ngram_size"),
    *(
        "temperature",
        "top_k",
        "top_p",
        "typical_p",
        "bad_words_ids",
        "eos_token_ids",
        "output_past",
        "output_scores",
    ),
    *("num_labels", "torchscript", "use_bfloat16", "return_dict_in_generate", "remove_invalid_values"),
)


def open_checkpoint(path: Path) -> tuple[Checkpoint, TextEncoder | None]:
    """The checkpoint at `path` and its tokenizer: None where there is none, or none that is implemented.

    Raises CheckpointError or ConfigError, naming the file and what in it was not understood.
    """
    if path.is_dir():
        return _check_depth(_open_folder(path)), load_tokenizer(path) or smiles_tokenizer(path)
    if path.suffix == ".gguf" and path.is_file():
        return _open_gguf(path)
    raise CheckpointError(
        f"{path.name} is neither a folder with a config.json nor a .gguf file: give one of these."
    )


def read_stated(
    stated: Mapping[str, object], weights: Callable[[], Source], attributes: Attributes | None = None
) -> Checkpoint:
    """What a configuration describes. Raises ConfigError, naming what it refuses.

    Some families ask the names of the tensors of `weights`, which are fetched once the family is known. Who
    gives the `attributes` of what is stated can ask them afterwards what was read.
    """
    attributes = attributes or Attributes(stated, "config.json")
    return _finished(attributes, _read_family(stated, attributes, weights))


def _open_folder(folder: Path) -> Checkpoint:
    stated = _read_config(folder / "config.json")
    if "model_type" not in stated and (folder / "model.bin").is_file():
        attributes = Attributes(stated, "config.json")
        converted = whisper_ct2.read(attributes, CTranslate2(folder / "model.bin"), special_ids(folder))
        return _finished(attributes, converted)
    return read_stated(stated, lambda: _weights(folder))


def _finished(attributes: Attributes, checkpoint: Checkpoint) -> Checkpoint:
    attributes.no_effect(*_NO_EFFECT)
    attributes.expect(pruned_heads={})
    attributes.finish()
    return checkpoint


def _read_family(
    stated: Mapping[str, object], attributes: Attributes, weights: Callable[[], Source]
) -> Checkpoint:
    family = stated.get("model_type")
    names = stated.get("architectures")
    architectures = [str(name) for name in names] if isinstance(names, list) else []
    if not isinstance(family, str) or family not in FAMILIES:
        raise ConfigError(
            f"config.json says model_type {family!r}, which is not implemented: {', '.join(FAMILIES)} are."
        )
    return FAMILIES[family](attributes, weights(), architectures)


def _weights(folder: Path) -> Source:
    """The tensors of a folder: safetensors where there are some, since they hold nothing but tensors."""
    if not Safetensors.lies_in(folder) and PickledTensors.lies_in(folder):
        return PickledTensors(folder)
    return Safetensors(folder)


def _open_gguf(file: Path) -> tuple[Checkpoint, TextEncoder | None]:
    opened = GGUF(file)
    architecture = opened.fields.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in GGUF_ARCHITECTURES:
        raise ConfigError(
            f"{file.name} holds a model of architecture {architecture!r}, which is not implemented: "
            f"{', '.join(GGUF_ARCHITECTURES)} are."
        )
    checkpoint = _check_depth(GGUF_ARCHITECTURES[architecture](opened))
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
