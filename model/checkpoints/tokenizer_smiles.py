"""Tokenizers of chemistry models: a vocab.txt of SMILES symbols, and what cuts a text into them."""

import re
from pathlib import Path
from typing import Any

from model.errors import CheckpointError
from model.text import TextEncoder

# Schwaller et al. 2019 (Molecular Transformer), methods; also `tokenization_smiles.py` of rxnmapper.
SYMBOL = (
    r"\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9]"
)
_FIRST, _LAST, _UNKNOWN, _MASK = "[CLS]", "[SEP]", "[UNK]", "[MASK]"
_SPECIAL = ("[PAD]", _UNKNOWN, _FIRST, _LAST, _MASK)
_LARGEST_FILE = 2**24


def smiles_tokenizer(folder: Path) -> TextEncoder | None:
    """The encoder of a folder's vocab.txt, or None where that is missing or holds more than SMILES symbols.

    What is no symbol becomes one unknown token a piece, which the notices tell; the original code leaves it
    out. Raises CheckpointError where a special token is missing or a token stands there twice.
    """
    path = folder / "vocab.txt"
    if not path.is_file():
        return None
    tokens = _read(path)
    if not all(re.fullmatch(SYMBOL, token) for token in tokens):
        return None
    missing = [token for token in _SPECIAL if token not in tokens]
    if missing or len(set(tokens)) < len(tokens):
        fault = f"lacks {missing[0]}" if missing else "repeats a token"
        raise CheckpointError(f"{path.name} of {folder.name} {fault}: fetch it again.")
    return TextEncoder(_spec({token: place for place, token in enumerate(tokens)}), _MASK)


def _read(path: Path) -> list[str]:
    if path.stat().st_size > _LARGEST_FILE:
        raise CheckpointError(f"{path.name} has {path.stat().st_size} bytes, too many for a vocabulary.")
    try:
        return path.read_text("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path.name} of {path.parent.name} is not readable text: {error}.") from error


def _spec(ids: dict[str, int]) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    first, last = ({"SpecialToken": {"id": token, "type_id": 0}} for token in (_FIRST, _LAST))
    texts = [{"Sequence": {"id": name, "type_id": place}} for place, name in enumerate("AB")]
    return {
        "version": "1.0",
        "added_tokens": [{"id": ids[token], "content": token, **flags} for token in _SPECIAL],
        "normalizer": {"type": "Strip", "strip_left": True, "strip_right": True},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": SYMBOL},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, texts[0], last],
            "pair": [first, texts[0], last, texts[1], {"SpecialToken": {"id": _LAST, "type_id": 1}}],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (_FIRST, _LAST)
            },
        },
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": _UNKNOWN},
    }
