"""The tokenizer of a checkpoint folder: tokenizer.json, and what lies beside it."""

import json
from pathlib import Path
from typing import Any

from model.errors import CheckpointError
from model.text import TextEncoder
from model.tokenizer_spec import Spec

_MASK_NAMES = ("[MASK]", "<mask>")


def load_tokenizer(folder: Path) -> TextEncoder | None:
    """The encoder of a folder's tokenizer.json, or None where there is none (such a model still runs ids).

    What tokenizer.json says of BOS and EOS wins over `add_bos_token` in tokenizer_config.json, as in
    `transformers`. Raises CheckpointError where a file is damaged.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    spec = _read(path)
    config = _read(folder / "special_tokens_map.json") | _read(folder / "tokenizer_config.json")
    try:
        return TextEncoder(spec, _mask_token(spec, config))
    except Exception as error:  # `tokenizers` raises bare Exception
        raise CheckpointError(f"The tokenizer {path} is damaged ({error!r}): fetch it again.") from error


def special_ids(folder: Path) -> dict[str, int]:
    """The ids of the tokens that a folder's tokenizer.json adds to its vocabulary, where it has one."""
    added = _read(folder / "tokenizer.json").get("added_tokens")
    tokens = [token for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    numbered = [(token.get("content"), token.get("id")) for token in tokens]
    return {name: place for name, place in numbered if isinstance(name, str) and isinstance(place, int)}


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON ({error}): fetch it again.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} does not hold a JSON object: fetch it again.")
    return content


def _content(token: str | dict[str, Any] | None) -> str | None:
    return token["content"] if isinstance(token, dict) else token


def _mask_token(spec: Spec, config: dict[str, Any]) -> str | None:
    names = {token["content"] for token in spec.get("added_tokens", ())}
    return _content(config.get("mask_token")) or next((name for name in _MASK_NAMES if name in names), None)
