"""What the parts of a tokenizer.json say (the format of Hugging Face's `tokenizers`)."""

from collections.abc import Iterator, Mapping
from typing import Any

# A JSON object: the whole file, or one part of it.
Spec = Mapping[str, Any]

SPACE_MARK = "▁"


def steps(part: Spec | None) -> Iterator[Spec]:
    """The steps of a normaliser, pre-tokenizer, post-processor or decoder, sequences unrolled."""
    if part is None:
        return
    lists = [part[key] for key in ("normalizers", "pretokenizers", "processors", "decoders") if key in part]
    if not lists:
        yield part
    for step in lists[0] if lists else ():
        yield from steps(step)


def is_byte_level(spec: Spec) -> bool:
    """Whether the vocabulary is spelled in GPT-2's byte alphabet."""
    parts = [*steps(spec.get("pre_tokenizer")), *steps(spec.get("decoder"))]
    return any(step["type"] == "ByteLevel" for step in parts)


def marks_spaces(spec: Spec) -> bool:
    """Whether the vocabulary writes a space as SentencePiece's mark."""
    parts = [*steps(spec.get("normalizer")), *steps(spec.get("pre_tokenizer")), *steps(spec.get("decoder"))]
    exchanged = [
        (step["content"], step["pattern"].get("String")) for step in parts if step["type"] == "Replace"
    ]
    return any(step["type"] == "Metaspace" for step in parts) or any(SPACE_MARK in pair for pair in exchanged)


def separates_pair(spec: Spec) -> bool:
    """Whether the template puts a special token between two texts, without which they are just one."""
    for step in steps(spec.get("post_processor")):
        if step["type"] in ("BertProcessing", "RobertaProcessing"):
            return True
        if step["type"] == "TemplateProcessing":
            kinds = [kind for piece in step["pair"] for kind in piece]
            texts = [place for place, kind in enumerate(kinds) if kind == "Sequence"]
            return "SpecialToken" in kinds[texts[0] : texts[-1]]
    return False


def whole(spec: Spec) -> dict[str, Any]:
    """The same tokenizer without truncation and padding, and with offsets that keep white space.

    Trimmed offsets lose where a token of white space stood.
    """
    parts = {key: _untrimmed(spec.get(key)) for key in ("pre_tokenizer", "post_processor")}
    return {**spec, **parts, "truncation": None, "padding": None}


def _untrimmed(part: object) -> object:
    if isinstance(part, dict):
        return {key: key != "trim_offsets" and _untrimmed(value) for key, value in part.items()}
    return [_untrimmed(item) for item in part] if isinstance(part, list) else part
