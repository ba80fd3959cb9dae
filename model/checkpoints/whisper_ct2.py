"""Whisper as CTranslate2 keeps it: sizes in the tensors' shapes, q, k and v in one matrix."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from model.checkpoints import whisper
from model.checkpoints.attributes import Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.ctranslate2 import CTranslate2
from model.checkpoints.mapping import Ignore, Take, take
from model.config import StackConfig, TransformerConfig
from model.errors import CheckpointError, ConfigError

SPECIFICATION = "WhisperSpec"
_START, _WITHOUT_TIMES, _STOP = "<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>"
_GELU = 3
# Larger vocabularies name languages: a transcript then begins with one, which the model finds.
_ENGLISH_VOCABULARY = 51864
_TIED = Ignore(r"decoder/projection/weight", "tied", copy_of="decoder/embeddings/weight")
# The matrices that are stacked, and what they are from the top.
_OWN, _OWN_PARTS = "self_attention/linear_0", "qkv"
_MEMORY, _MEMORY_PARTS = "attention/linear_1", "kv"
_HOW_TO_RUN = ("alignment_layer", "alignment_heads", "scale_alibi", "alibi_use_positive_positions")


def read(attributes: Attributes, source: CTranslate2, special: Mapping[str, int]) -> Checkpoint:
    """The checkpoint of a CTranslate2 folder; `special` are the ids of its tokenizer's special tokens.

    Raises ConfigError for another specification or quantised weights, CheckpointError for a damaged file.
    """
    if source.specification != SPECIFICATION:
        raise ConfigError(
            f"{source.origin} holds a {source.specification}, which is not implemented: {SPECIFICATION} is."
        )
    quantised = sorted(name for name in source.names if name.endswith("_scale"))
    if quantised:
        raise ConfigError(
            f"{source.origin} holds quantised weights ({quantised[0]}), which are not implemented: "
            "convert it as float16."
        )
    attributes.no_effect("alignment_heads", "lang_ids", "suppress_ids", "suppress_ids_begin")
    config = _config(source, special)
    _check_key_biases(source, config)
    numbers = Ignore("|".join(map(re.escape, source.scalars())), "read as configuration")
    return Checkpoint("whisper", config, source, table(config), (_TIED, numbers))


def _config(source: CTranslate2, special: Mapping[str, int]) -> TransformerConfig:
    vocabulary, width = source.shape("decoder/embeddings/weight", 2)
    facts = _facts(source)
    sizes: dict[str, object] = {
        "d_model": width,
        "vocab_size": vocabulary,
        "activation_function": "gelu",
        "num_mel_bins": source.shape("encoder/conv1/weight", 3)[1],
        "max_source_positions": source.shape("encoder/position_encodings/encodings", 2)[0],
        "max_target_positions": source.shape("decoder/position_encodings/encodings", 2)[0],
        "eos_token_id": _ids(special, [_STOP], source)[0],
        "scale_embedding": bool(facts.index("decoder/scale_embeddings", 1)),
    }
    for stack in ("encoder", "decoder"):
        sizes[f"{stack}_attention_heads"] = facts.integer(f"{stack}/num_heads")
        sizes[f"{stack}_ffn_dim"] = source.shape(f"{stack}/layer_0/ffn/linear_0/weight", 2)[0]
        sizes[f"{stack}_layers"] = len(
            [name for name in source.names if re.fullmatch(rf"{stack}/layer_\d+/ffn/linear_0/weight", name)]
        )
    facts.finish()
    config = whisper.read(Attributes(sizes, source.origin), source, ()).config
    start = [_START] if vocabulary > _ENGLISH_VOCABULARY else [_START, _WITHOUT_TIMES]
    return replace(config, start=_ids(special, start, source))


def _facts(source: CTranslate2) -> Attributes:
    """The numbers that the specification states, those that must have one value checked."""
    scalars = source.scalars()
    facts = Attributes(scalars, source.origin)
    facts.expect(**{"decoder/pre_norm": 1, "decoder/activation": _GELU, "decoder/alibi": 0})
    facts.expect(**{"decoder/start_from_zero_embedding": 0})
    facts.no_effect(*(f"decoder/{name}" for name in _HOW_TO_RUN))
    facts.no_effect(*(name for name in scalars if name.endswith("/keep_in_float32")))
    return facts


def _ids(special: Mapping[str, int], names: Sequence[str], source: CTranslate2) -> tuple[int, ...]:
    vocabulary = source.shape("decoder/embeddings/weight", 2)[0]
    missing = [name for name in names if special.get(name, -1) not in range(vocabulary)]
    if missing:
        raise CheckpointError(
            f"The tokenizer.json beside {source.origin} does not number {missing[0]} below {vocabulary}."
        )
    return tuple(special[name] for name in names)


def _check_key_biases(source: CTranslate2, config: TransformerConfig) -> None:
    """Whisper's keys have no bias, so what stands for it in a stacked bias must be zero."""
    for stack in config.stacks:
        stacked = [(_OWN, _OWN_PARTS), *([(_MEMORY, _MEMORY_PARTS)] if stack.cross else [])]
        for layer in range(stack.layers):
            for part, shares in stacked:
                name = f"{stack.name}/layer_{layer}/{part}/bias"
                source.shape(name, 1)
                if _Share(shares.index("k"), len(shares))(source.tensor(name)).any():
                    raise CheckpointError(
                        f"{source.origin} has a bias for the keys in {name}, which Whisper has not.",
                        tensor=name,
                    )


def table(config: TransformerConfig) -> list[Take]:
    """The mapping under CTranslate2's names."""
    assert config.encoder is not None
    return [
        take("decoder/embeddings/weight", "embeddings.tokens.weight", "head.projection.weight"),
        take("decoder/position_encodings/encodings", "embeddings.positions.weight"),
        take("encoder/position_encodings/encodings", "encoder.front.positions.weight"),
        *_linear("encoder/conv1", "encoder.front.first"),
        *_linear("encoder/conv2", "encoder.front.second"),
        *_stack(config.encoder.stack, "encoder.stack"),
        *_stack(config.stack, "stack"),
    ]


def _stack(config: StackConfig, target: str) -> list[Take]:
    layer, block = f"{config.name}/layer_{{layer}}", f"{target}.blocks.{{layer}}"
    rows = [
        *_stacked(f"{layer}/{_OWN}", f"{block}.attention", _OWN_PARTS),
        *_linear(f"{layer}/self_attention/linear_1", f"{block}.attention.o"),
        *_norm(f"{layer}/self_attention/layer_norm", f"{block}.attention_norm"),
        *_linear(f"{layer}/ffn/linear_0", f"{block}.ffn.up"),
        *_linear(f"{layer}/ffn/linear_1", f"{block}.ffn.down"),
        *_norm(f"{layer}/ffn/layer_norm", f"{block}.ffn_norm"),
        *_norm(f"{config.name}/layer_norm", f"{target}.final_norm"),
    ]
    if config.cross is not None:
        rows += [
            *_linear(f"{layer}/attention/linear_0", f"{block}.cross.q"),
            *_stacked(f"{layer}/{_MEMORY}", f"{block}.cross", _MEMORY_PARTS),
            *_linear(f"{layer}/attention/linear_2", f"{block}.cross.o"),
            *_norm(f"{layer}/attention/layer_norm", f"{block}.cross_norm"),
        ]
    return [row.over(config.layers) for row in rows]


def _linear(source: str, target: str) -> list[Take]:
    return [take(f"{source}/{part}", f"{target}.{part}") for part in ("weight", "bias")]


def _norm(source: str, target: str) -> list[Take]:
    return [take(f"{source}/gamma", f"{target}.gain"), take(f"{source}/beta", f"{target}.bias")]


def _stacked(source: str, target: str, parts: str) -> list[Take]:
    """The rows of matrices that stand on top of each other, and of their biases: the keys have none."""
    return [
        take(f"{source}/{kind}", f"{target}.{part}.{kind}", change=_Share(place, len(parts)))
        for place, part in enumerate(parts)
        for kind in ("weight", "bias")
        if (part, kind) != ("k", "bias")
    ]


class _Share:
    """One of several equal parts of the rows."""

    def __init__(self, place: int, parts: int) -> None:
        self.place, self.parts = place, parts

    def __call__(self, stacked: Tensor) -> Tensor:
        return stacked.tensor_split(self.parts)[self.place]
