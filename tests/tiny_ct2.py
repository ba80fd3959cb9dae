"""Writes CTranslate2's model.bin, and a tiny Whisper in it as its converter would."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
SPECIAL = {"<|startoftranscript|>": 90, "<|notimestamps|>": 91, "<|endoftext|>": 2}


def string(text: str) -> bytes:
    """A string as the format has it."""
    raw = text.encode() + b"\0"
    return struct.pack("<H", len(raw)) + raw


def variable(name: str, value: Tensor) -> bytes:
    """One variable: header and bytes."""
    raw = value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    head = struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape)
    return string(name) + head + struct.pack("<BI", DTYPES.index(value.dtype), len(raw)) + raw


def pack(
    variables: Mapping[str, Tensor],
    aliases: Mapping[str, str] | None = None,
    *,
    version: int = 6,
    specification: str = "WhisperSpec",
) -> bytes:
    """The whole file."""
    parts = [struct.pack("<I", version), string(specification), struct.pack("<II", 3, len(variables))]
    parts += [variable(name, value) for name, value in variables.items()]
    parts.append(struct.pack("<I", len(aliases or {})))
    parts += [string(name) + string(target) for name, target in (aliases or {}).items()]
    return b"".join(parts)


def whisper(
    tensors: Mapping[str, Tensor], heads: tuple[int, int]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Variables and aliases of a Whisper whose tensors have Hugging Face's names."""
    found: dict[str, Tensor] = {}
    for stack, count in zip(("encoder", "decoder"), heads, strict=True):
        own = {
            name.removeprefix(f"model.{stack}."): value for name, value in tensors.items() if stack in name
        }
        found[f"{stack}/num_heads"] = torch.tensor(count, dtype=torch.int16)
        found[f"{stack}/position_encodings/encodings"] = own["embed_positions.weight"]
        _norm(found, f"{stack}/layer_norm", own, "layer_norm")
        for layer in range(len([name for name in own if name.endswith("fc1.weight")])):
            _layer(
                found,
                f"{stack}/layer_{layer}",
                {
                    name.removeprefix(f"layers.{layer}."): value
                    for name, value in own.items()
                    if name.startswith(f"layers.{layer}.")
                },
            )
    for conv in ("conv1", "conv2"):
        _linear(found, f"encoder/{conv}", tensors, f"model.encoder.{conv}")
    found["decoder/embeddings/weight"] = tensors["model.decoder.embed_tokens.weight"]
    facts = {
        "activation": 3,
        "alibi": 0,
        "pre_norm": 1,
        "scale_embeddings": 0,
        "start_from_zero_embedding": 0,
    }
    found |= {f"decoder/{name}": torch.tensor(value, dtype=torch.int8) for name, value in facts.items()}
    found["decoder/alignment_layer"] = torch.tensor(-1, dtype=torch.int16)
    return found, {"decoder/projection/weight": "decoder/embeddings/weight"}


def write(folder: Path, content: bytes) -> Path:
    """A CTranslate2 folder: config.json, model.bin and what of the tokenizer is needed."""
    folder.mkdir(exist_ok=True)
    config = {"alignment_heads": [[0, 1]], "lang_ids": [93], "suppress_ids": [1], "suppress_ids_begin": [2]}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.bin").write_bytes(content)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": place, "content": name, "special": True, **flags} for name, place in SPECIAL.items()]
    words = {f"w{place}": place for place in range(90) if place != 2}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "w0"}
    spec = {"version": "1.0", "added_tokens": added, "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    return folder


def _layer(found: dict[str, Tensor], target: str, own: Mapping[str, Tensor]) -> None:
    _stacked(found, f"{target}/self_attention/linear_0", own, "self_attn", "qkv")
    _linear(found, f"{target}/self_attention/linear_1", own, "self_attn.out_proj")
    _norm(found, f"{target}/self_attention/layer_norm", own, "self_attn_layer_norm")
    _linear(found, f"{target}/ffn/linear_0", own, "fc1")
    _linear(found, f"{target}/ffn/linear_1", own, "fc2")
    _norm(found, f"{target}/ffn/layer_norm", own, "final_layer_norm")
    if "encoder_attn.q_proj.weight" in own:
        _linear(found, f"{target}/attention/linear_0", own, "encoder_attn.q_proj")
        _stacked(found, f"{target}/attention/linear_1", own, "encoder_attn", "kv")
        _linear(found, f"{target}/attention/linear_2", own, "encoder_attn.out_proj")
        _norm(found, f"{target}/attention/layer_norm", own, "encoder_attn_layer_norm")


def _stacked(found: dict[str, Tensor], target: str, own: Mapping[str, Tensor], part: str, kinds: str) -> None:
    weights = [own[f"{part}.{kind}_proj.weight"] for kind in kinds]
    nothing = torch.zeros(len(weights[0]))
    found[f"{target}/weight"] = torch.cat(weights)
    found[f"{target}/bias"] = torch.cat([own.get(f"{part}.{kind}_proj.bias", nothing) for kind in kinds])


def _linear(found: dict[str, Tensor], target: str, own: Mapping[str, Tensor], name: str) -> None:
    found |= {f"{target}/{kind}": own[f"{name}.{kind}"] for kind in ("weight", "bias")}


def _norm(found: dict[str, Tensor], target: str, own: Mapping[str, Tensor], name: str) -> None:
    found |= {f"{target}/gamma": own[f"{name}.weight"], f"{target}/beta": own[f"{name}.bias"]}
