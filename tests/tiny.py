"""Tiny random checkpoints and models whose attention is peaked, for tests.

A freshly initialised model attends almost uniformly, so that a wrong scale or rope base would not be seen:
every weight here is drawn large, and biases and gains at random. Sizes are unlike every default.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from model.plan import Plan

BERT: dict[str, object] = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 97,
    "hidden_size": 60,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 70,
    "hidden_act": "gelu_new",
    "max_position_embeddings": 48,
    "type_vocab_size": 3,
    "layer_norm_eps": 1e-2,
}
LLAMA: dict[str, object] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 89,
    "hidden_size": 60,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 14,
    "intermediate_size": 74,
    "hidden_act": "gelu",
    "max_position_embeddings": 48,
    "rms_norm_eps": 1e-2,
    "rope_theta": 777.0,
    "attention_bias": True,
    "mlp_bias": True,
    "tie_word_embeddings": True,
}


def ids(count: int, seed: int = 0, vocabulary: int = 89) -> list[int]:
    """Random token ids."""
    return torch.randint(vocabulary, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


# Standard deviation of the matrices: large enough for peaked attention, small enough to keep fp32 to 1e-5.
BERT_SPREAD, LLAMA_SPREAD = 0.4, 0.25


def draw(name: str, shape: tuple[int, ...], random: torch.Generator, spread: float) -> Tensor:
    """Random values for the tensor called `name`: matrices around 0, gains around 1, biases around 0."""
    if len(shape) == 1:
        gain = "norm" in name.lower() and name.endswith("weight")
        return torch.randn(shape, generator=random) * 0.3 + float(gain)
    return torch.randn(shape, generator=random) * spread


def bert_tensors(
    config: Mapping[str, object] = BERT, *, masked: bool = False, seed: int = 0
) -> dict[str, Tensor]:
    """The tensors of a BERT checkpoint under their Hugging Face names."""
    sizes = {name: value for name, value in config.items() if isinstance(value, int)}
    width, inner = sizes["hidden_size"], sizes["intermediate_size"]
    linears = {}
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{number}" for number in range(sizes["num_hidden_layers"])):
        names = ("self.query", "self.key", "self.value", "output.dense")
        linears |= {f"{layer}.attention.{name}": (width, width) for name in names}
        linears |= {f"{layer}.intermediate.dense": (inner, width), f"{layer}.output.dense": (width, inner)}
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    embedded = {"word": "vocab_size", "position": "max_position_embeddings", "token_type": "type_vocab_size"}
    shapes = {f"embeddings.{name}_embeddings.weight": (sizes[size], width) for name, size in embedded.items()}
    shapes |= _linear_shapes(linears) | _norm_shapes(norms, width)
    if masked:
        head = "cls.predictions.transform"
        shapes = {f"bert.{name}": shape for name, shape in shapes.items()}
        shapes |= _linear_shapes({f"{head}.dense": (width, width)}) | _norm_shapes(
            [f"{head}.LayerNorm"], width
        )
        shapes["cls.predictions.bias"] = (sizes["vocab_size"],)
    return _drawn(shapes, seed, BERT_SPREAD)


def llama_tensors(config: Mapping[str, object] = LLAMA, seed: int = 0) -> dict[str, Tensor]:
    """The tensors of a LLaMA checkpoint under their Hugging Face names."""
    sizes = {name: value for name, value in config.items() if isinstance(value, int)}
    width, inner, vocabulary = sizes["hidden_size"], sizes["intermediate_size"], sizes["vocab_size"]
    queries, keys = (sizes["head_dim"] * sizes[f"num_{name}_heads"] for name in ("attention", "key_value"))
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocabulary, width),
        "model.norm.weight": (width,),
    }
    for layer in (f"model.layers.{number}" for number in range(sizes["num_hidden_layers"])):
        attention = {"q": (queries, width), "k": (keys, width), "v": (keys, width), "o": (width, queries)}
        mlp = {"gate": (inner, width), "up": (inner, width), "down": (width, inner)}
        for part, linears, bias in (("self_attn", attention, "attention_bias"), ("mlp", mlp, "mlp_bias")):
            named = {f"{layer}.{part}.{name}_proj": shape for name, shape in linears.items()}
            shapes |= _linear_shapes(named, bias=bool(config[bias]))
        shapes |= {f"{layer}.{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocabulary, width)
    return _drawn(shapes, seed, LLAMA_SPREAD)


def write_config(folder: Path, config: Mapping[str, object]) -> Path:
    """Writes the config.json of a checkpoint folder."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(config)), "utf-8")
    return folder


def write(folder: Path, config: Mapping[str, object], tensors: Mapping[str, Tensor]) -> Path:
    """Writes a checkpoint folder with one safetensors file."""
    save_file(dict(tensors), write_config(folder, config) / "model.safetensors")
    return folder


def write_sharded(
    folder: Path, config: Mapping[str, object], tensors: Mapping[str, Tensor]
) -> dict[str, str]:
    """Writes a checkpoint folder with two shards and their index; returns the index's map."""
    write_config(folder, config)
    place = {name: f"model-{number % 2 + 1}-of-2.safetensors" for number, name in enumerate(tensors)}
    for file in sorted(set(place.values())):
        save_file({name: tensor for name, tensor in tensors.items() if place[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": place}))
    return place


def bert(folder: Path, *, masked: bool = False, dtype: str = "float32", **changed: object) -> LoadedModel:
    """A tiny encoder, loaded; `changed` replaces attributes of its configuration."""
    config = BERT | changed
    return load_model(write(folder, config, bert_tensors(config, masked=masked)), device="cpu", dtype=dtype)


def llama(folder: Path, *, dtype: str = "float32", **changed: object) -> LoadedModel:
    """A tiny decoder, loaded; `changed` replaces attributes of its configuration."""
    config = LLAMA | changed
    return load_model(write(folder, config, llama_tensors(config)), device="cpu", dtype=dtype)


def resid(loaded: LoadedModel, inputs: Inputs, plan: object = ()) -> Tensor:
    """The stream at every layer of a run, [L + 1, T, D]."""
    trace = loaded.transformer.trace(inputs, Plan.parse(plan), record=["resid"])
    return torch.stack(list(trace.resid.values()))


def _drawn(shapes: Mapping[str, tuple[int, ...]], seed: int, spread: float) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    return {name: draw(name, shape, random, spread) for name, shape in shapes.items()}


def _linear_shapes(
    linears: Mapping[str, tuple[int, int]], *, bias: bool = True
) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": shape for name, shape in linears.items()}
    return shapes | ({f"{name}.bias": shape[:1] for name, shape in linears.items()} if bias else {})


def _norm_shapes(names: list[str], width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.{part}": (width,) for name in names for part in ("weight", "bias")}
