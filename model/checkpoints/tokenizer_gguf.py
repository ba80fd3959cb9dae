"""The tokenizer of a GGUF file: its metadata written as the tokenizer.json of the same tokenizer.

The meaning of the `tokenizer.ggml.*` keys, and of the names `tokenizer.ggml.pre` takes, is llama.cpp's.
"""

from collections.abc import Sequence
from typing import Any

from model.checkpoints.gguf_splitting import SPLITTINGS, Splitting
from model.checkpoints.gguf_vocabulary import Fields, TokenType, Vocabulary, read_vocabulary, role
from model.errors import CheckpointError, ConfigError
from model.text import TextEncoder
from model.tokenizer_spec import SPACE_MARK

# SentencePiece's BPE makes none of these by merging.
_UNMERGEABLE = (TokenType.UNKNOWN, TokenType.CONTROL, TokenType.BYTE)


def gguf_tokenizer(fields: Fields) -> TextEncoder:
    """The encoder that a GGUF file's metadata describes; `fields` maps its keys to plain Python values.

    Raises ConfigError for a kind of tokenizer that is not implemented (the model still runs ids), and
    CheckpointError where the metadata contradicts itself.
    """
    spec = tokenizer_spec(fields)
    try:
        return TextEncoder(spec, role(fields, fields["tokenizer.ggml.tokens"], "mask"))
    except Exception as error:  # `tokenizers` raises bare Exception
        raise CheckpointError(
            f"The GGUF file's tokenizer is damaged ({error!r}): fetch the file again."
        ) from error


def tokenizer_spec(fields: Fields) -> dict[str, Any]:
    """The content of the tokenizer.json of the same tokenizer. Raises as `gguf_tokenizer` does."""
    kind = fields.get("tokenizer.ggml.model")
    if kind not in ("gpt2", "llama"):
        raise ConfigError(
            f"The GGUF file's tokenizer is a {kind!r} one, which is not implemented: run ids instead."
        )
    vocabulary = read_vocabulary(fields)
    if kind == "gpt2":
        splitting = _splitting(fields)
        spec, adds_bos = _byte_level(fields, vocabulary, splitting), splitting.adds_bos
    else:
        spec, adds_bos = _sentence_piece(fields, vocabulary), True
    template = _template(
        _end(fields, vocabulary, "bos") if fields.get("tokenizer.ggml.add_bos_token", adds_bos) else [],
        _end(fields, vocabulary, "eos") if fields.get("tokenizer.ggml.add_eos_token", False) else [],
    )
    return {**spec, "added_tokens": vocabulary.added_tokens(), "post_processor": template}


def merges_by_score(vocabulary: Vocabulary, scores: Sequence[float]) -> list[tuple[str, str]]:
    """The merges that SentencePiece's BPE does: any two pieces that make a piece, the highest score first.

    Source: Kudo and Richardson 2018, and `bpe_model.cc` of SentencePiece.
    """
    pieces = {
        token: place for token, place in vocabulary.ids.items() if vocabulary.types[place] not in _UNMERGEABLE
    }
    merges = [
        (-scores[place], place, cut)
        for token, place in pieces.items()
        for cut in range(1, len(token))
        if token[:cut] in pieces and token[cut:] in pieces
    ]
    tokens = vocabulary.tokens
    return [(tokens[place][:cut], tokens[place][cut:]) for _, place, cut in sorted(merges)]


def _splitting(fields: Fields) -> Splitting:
    name = str(fields.get("tokenizer.ggml.pre", "not stated"))
    if name not in SPLITTINGS:
        known = ", ".join(SPLITTINGS)
        raise ConfigError(
            f"The GGUF file's pre-tokenizer is {name!r}, not one of {known}: run ids instead of text."
        )
    return SPLITTINGS[name]


def _byte_level(fields: Fields, vocabulary: Vocabulary, splitting: Splitting) -> dict[str, Any]:
    cuts: list[dict[str, Any]] = []
    if splitting.single_digits:
        cuts.append({"type": "Digits", "individual_digits": True})
    if splitting.pattern:
        pattern = {"Regex": splitting.pattern}
        cuts.append({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False})
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    merges = [merge.split(" ") for merge in fields.get("tokenizer.ggml.merges", ())]
    return {
        "normalizer": {"type": "NFC"} if splitting.nfc else None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*cuts, {**to_bytes, "use_regex": splitting.pattern is None}],
        },
        "decoder": {**to_bytes, "use_regex": False},
        "model": {**_bpe(vocabulary, merges), "ignore_merges": splitting.ignore_merges},
    }


def _sentence_piece(fields: Fields, vocabulary: Vocabulary) -> dict[str, Any]:
    for key in ("precompiled_charsmap", "remove_extra_whitespaces"):
        if fields.get(f"tokenizer.ggml.{key}"):
            raise ConfigError(
                f"The GGUF file's tokenizer has {key}, which is not implemented: run ids instead."
            )
    scores = fields.get("tokenizer.ggml.scores", ())
    if len(scores) != len(vocabulary.tokens):
        raise CheckpointError("The GGUF file does not score each of its tokens: fetch the file again.")
    unknown = role(fields, vocabulary.tokens, "unknown")
    prefixed = fields.get("tokenizer.ggml.add_space_prefix", True)
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE_MARK}
    unmark = {"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "}
    to_bytes = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    prepend = [{"type": "Prepend", "prepend": SPACE_MARK}] if prefixed else []
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else []
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*prepend, mark]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [unmark, *to_bytes, *strip]},
        "model": _bpe(vocabulary, merges_by_score(vocabulary, scores))
        | {"unk_token": unknown, "fuse_unk": True, "byte_fallback": TokenType.BYTE in vocabulary.types},
    }


def _bpe(vocabulary: Vocabulary, merges: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {
        "type": "BPE",
        "vocab": vocabulary.ids,
        "merges": merges,
        "unk_token": None,
        "byte_fallback": False,
    }


def _end(fields: Fields, vocabulary: Vocabulary, name: str) -> list[tuple[str, int]]:
    token = role(fields, vocabulary.tokens, name)
    if token is None:
        raise CheckpointError(
            f"The GGUF file adds a {name.upper()} token but names none: fetch the file again."
        )
    return [(token, vocabulary.ids[token])]


def _template(before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> dict[str, Any] | None:
    if not before and not after:
        return None
    first, last = (
        [{"SpecialToken": {"id": name, "type_id": 0}} for name, _ in end] for end in (before, after)
    )
    single = [*first, {"Sequence": {"id": "A", "type_id": 0}}, *last]
    names = [*before, *after]
    return {
        "type": "TemplateProcessing",
        "single": single,
        # A file's metadata has no template for a pair, so nothing separates the texts.
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {name: {"id": name, "ids": [place], "tokens": [name]} for name, place in names},
    }
