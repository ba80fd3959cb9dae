"""Writes the tensors of a tiny LLaMA as llama.cpp stores them: other names, other row order, quantised."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
METADATA = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "head_dim",
    "rope.dimension_count": "head_dim",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
}
Quantisation = gguf.GGMLQuantizationType


def metadata(config: Mapping[str, object]) -> dict[str, object]:
    """The `llama.*` metadata that states a Hugging Face configuration, without the `llama.`."""
    stated = {key: config[name] for key, name in METADATA.items()}
    return stated | {
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.freq_base": config["rope_theta"],
    }


def quantise(tensors: Mapping[str, Tensor], kind: Quantisation) -> dict[str, Tensor]:
    """The values that are left of the matrices after storing them as `kind`."""
    return {
        name: tensor
        if tensor.ndim == 1
        else torch.from_numpy(gguf.dequantize(_packed(tensor, kind), kind).copy())
        for name, tensor in tensors.items()
    }


def write(
    file: Path,
    config: Mapping[str, object],
    tensors: Mapping[str, Tensor],
    kind: Quantisation = Quantisation.F32,
    architecture: str = "llama",
    **changed: object,
) -> Path:
    """Writes one GGUF file; `changed` replaces or adds `llama.*` metadata, with two underscores for a dot."""
    writer = gguf.GGUFWriter(file, architecture)
    dotted = {key.replace("__", "."): value for key, value in changed.items()}
    for key, value in (metadata(config) | dotted).items():
        _add(writer, f"{architecture}.{key}", value)
    # Of the architectures here, llama alone has another order of rows.
    sizes = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    heads = sizes if architecture == "llama" else {}
    for name, tensor in tensors.items():
        placed = tensor
        for projection, count in heads.items():
            if f".{projection}_proj." in name:
                placed = interleave(tensor, int(str(count)))
        used = Quantisation.F32 if tensor.ndim == 1 else kind
        writer.add_tensor(rename(name), _packed(placed, used), raw_dtype=used)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def rename(name: str) -> str:
    """The llama.cpp name of a tensor."""
    stem, kind = name.rsplit(".", 1)
    if not stem.startswith("model.layers."):
        return f"{NAMES[stem]}.{kind}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{NAMES[part]}.{kind}"


def interleave(rows: Tensor, heads: int) -> Tensor:
    """The row order of llama.cpp's converter: rows i and i + K/2 of a head side by side."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).transpose(1, 2).reshape(rows.shape)


def _packed(tensor: Tensor, kind: Quantisation) -> np.ndarray:
    return gguf.quantize(tensor.contiguous().numpy(), kind)


def _add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_string(key, str(value))
