"""A configuration alone, without weights: read as a checkpoint's would be."""

import json
import re
from collections.abc import Mapping, Sequence

from torch import Tensor

from model.checkpoints.attributes import Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.reader import FAMILIES, read_stated
from model.errors import ConfigError, InputError

# The tensor by which a reader knows a masked-token head, for the classes that have one.
_MASKED = {
    **dict.fromkeys(("BertForMaskedLM", "BertForPreTraining"), "cls.predictions.bias"),
    **dict.fromkeys(("RobertaForMaskedLM", "XLMRobertaForMaskedLM"), "lm_head.bias"),
    **dict.fromkeys(("AlbertForMaskedLM", "AlbertForPreTraining"), "predictions.bias"),
    "DistilBertForMaskedLM": "vocab_projector.bias",
}


class _Stated:
    """A source of which nothing but the names that matter is known."""

    origin = "config.json"

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def tensor(self, name: str) -> Tensor:
        """Nobody asks for a weight here."""
        raise AssertionError(name)


def read_config(stated: Mapping[str, object], attributes: Attributes | None = None) -> Checkpoint:
    """What a configuration describes. Raises ConfigError, naming what is not implemented."""
    named = stated.get("architectures")
    classes = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    names = [_MASKED[name] for name in classes if name in _MASKED]
    if stated.get("model_type") == "t5" and stated.get("tie_word_embeddings") is False:
        names.append("lm_head.weight")
    return read_stated(stated, lambda: _Stated(names), attributes)


def read_text(text: str) -> tuple[Checkpoint, Mapping[str, object]]:
    """What a config.json describes, and the defaults of its family that stand in for what it does not say.

    Raises InputError where it is no JSON object or names no family, or ConfigError.
    """
    stated = _object(text)
    if stated.get("model_type") is None:
        families = ", ".join(FAMILIES)
        raise InputError(f"The text does not say model_type, which names the family: give one of {families}.")
    attributes = Attributes(stated, "config.json")
    try:
        return read_config(stated, attributes), attributes.assumed
    except ConfigError as error:
        raise _with_defaults(error, attributes.assumed) from error


def assignments(values: Mapping[str, object]) -> str:
    """Attributes as a sentence holds them: n_layer = 12, n_head = 12."""
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


def _with_defaults(error: ConfigError, assumed: Mapping[str, object]) -> ConfigError:
    """The refusal, with those defaults named that it speaks of and the text does not."""
    spoken = {name: value for name, value in assumed.items() if _speaks_of(error.detail, name, value)}
    if not spoken:
        return error
    said = f"{error.detail} Not in the text, and so at its family's default: {assignments(spoken)}."
    return ConfigError(said, **error.extra)


def _speaks_of(detail: str, name: str, value: object) -> bool:
    """Whether a sentence holds an attribute's name, or its number and a word of its name."""
    about = any(word in detail for word in name.split("_") if len(word) > 1 and word != "num")
    return name in detail or (type(value) is int and re.search(rf"\b{value}\b", detail) is not None and about)


def _object(text: str) -> dict[str, object]:
    try:
        stated = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        what = "paste a whole config.json"
        if "{" not in text:
            what += ", that is the text within the file and not its name or path"
        raise InputError(f"The text is not readable JSON ({error}): {what}.") from error
    if not isinstance(stated, dict):
        raise InputError("The text is JSON, but not an object in braces: paste a whole config.json.")
    return stated


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose names differ. JSON lets a name stand twice, and which one holds would be a guess."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"config.json states {twice} twice: leave one.", attribute=twice)
    return found
