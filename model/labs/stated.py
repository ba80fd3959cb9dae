"""A configuration alone, without weights: read as a checkpoint's would be."""

import json
from collections.abc import Mapping, Sequence

from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.reader import read_stated
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


def read_config(stated: Mapping[str, object]) -> Checkpoint:
    """What a configuration describes. Raises ConfigError, naming what is not implemented."""
    named = stated.get("architectures")
    classes = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    names = [_MASKED[name] for name in classes if name in _MASKED]
    if stated.get("model_type") == "t5" and stated.get("tie_word_embeddings") is False:
        names.append("lm_head.weight")
    return read_stated(stated, lambda: _Stated(names))


def read_text(text: str) -> Checkpoint:
    """What a config.json describes. Raises InputError where it is no JSON object, or ConfigError."""
    try:
        stated = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InputError(f"The text is not readable JSON ({error}): paste a whole config.json.") from error
    if not isinstance(stated, dict):
        raise InputError("The text is JSON, but not an object in braces: paste a whole config.json.")
    return read_config(stated)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose names differ. JSON lets a name stand twice, and which one holds would be a guess."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"config.json states {twice} twice: leave one.", attribute=twice)
    return found
