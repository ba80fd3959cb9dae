"""The vocabulary in a GGUF file's metadata: its tokens, their types, and which of them are special."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from model.errors import CheckpointError

# GGUF metadata as plain Python values.
Fields = Mapping[str, Any]


class TokenType(IntEnum):
    """Values of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_SPECIAL = (TokenType.UNKNOWN, TokenType.CONTROL)
_MATCHED_WHOLE = (*_SPECIAL, TokenType.USER_DEFINED)


@dataclass(frozen=True)
class Vocabulary:
    """The tokens in the order of their ids, with the type of each."""

    tokens: list[str]
    types: list[int]

    @property
    def ids(self) -> dict[str, int]:
        """The id of each token."""
        return {token: token_id for token_id, token in enumerate(self.tokens)}

    def added_tokens(self) -> list[dict[str, Any]]:
        """The "added_tokens" of a tokenizer.json: those matched whole in the text, before it is cut."""
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        return [
            {"id": token_id, "content": token, "special": kind in _SPECIAL, **flags}
            for token_id, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True))
            if kind in _MATCHED_WHOLE
        ]


def read_vocabulary(fields: Fields) -> Vocabulary:
    """The vocabulary of a GGUF file; in one without types, BOS, EOS and mask are its control tokens.

    Raises CheckpointError where the lists contradict each other.
    """
    tokens = list(fields.get("tokenizer.ggml.tokens", ()))
    types = fields.get("tokenizer.ggml.token_type")
    if types is None:
        types = [TokenType.NORMAL] * len(tokens)
        for name in ("bos", "eos", "mask"):
            token = role(fields, tokens, name)
            if token is not None:
                types[tokens.index(token)] = TokenType.CONTROL
    if not tokens or len(set(tokens)) != len(tokens) or len(types) != len(tokens):
        raise CheckpointError(
            "The GGUF file's vocabulary is empty, repeats a token or lacks a type: fetch the file again."
        )
    return Vocabulary(tokens, list(types))


def role(fields: Fields, tokens: list[str], name: str) -> str | None:
    """The token that `tokenizer.ggml.<name>_token_id` names, or None. Raises CheckpointError for a bad id."""
    token_id = fields.get(f"tokenizer.ggml.{name}_token_id")
    if token_id is None:
        return None
    if not 0 <= token_id < len(tokens):
        raise CheckpointError(
            f"The GGUF file's {name} token {token_id} is out of range: fetch the file again."
        )
    return tokens[token_id]
