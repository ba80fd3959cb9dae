from dataclasses import replace
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from model.config import TransformerConfig
from model.errors import CheckpointError, ConfigError
from model.inputs import Inputs
from model.loading import load_model
from tests import tiny, tiny_gguf

# Numbers that fp32, in which GGUF states them, holds exactly; widths that 8-bit blocks of 32 divide.
CONFIG = tiny.LLAMA | {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "hidden_act": "silu",
    "rms_norm_eps": 2.0**-7,
    "mlp_bias": False,
}
FOLDER = {name: value for name, value in CONFIG.items() if name not in ("attention_bias", "mlp_bias")}


def _tensors(**changed: object) -> dict[str, torch.Tensor]:
    drawn = tiny.llama_tensors(CONFIG | changed)
    return {name: tensor for name, tensor in drawn.items() if not name.endswith("o_proj.bias")}


def _one_mask(config: TransformerConfig) -> TransformerConfig:
    """A folder states a mask for each layer; here they must be one."""
    assert {config.mask_of(site) for site in config.sites} == {config.stack.mask}
    return replace(config, stack=replace(config.stack, layer_masks=None))


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.Q8_0, Kind.Q4_1], ids=lambda kind: kind.name)
@pytest.mark.parametrize("tied", [True, False])
def test_it_is_the_model_of_the_folder(tmp_path: Path, kind: Kind, tied: bool) -> None:
    changed = {"tie_word_embeddings": tied}
    tensors = _tensors(**changed)
    file = tiny_gguf.write(tmp_path / "model.gguf", CONFIG | changed, tensors, kind, "qwen2")
    folder = tiny.write(tmp_path / "folder", FOLDER | changed, tiny_gguf.quantise(tensors, kind))
    one, other = load_model(file), load_model(folder)
    assert (one.family, one.config) == (other.family, _one_mask(other.config))
    assert one.config.stack.attention.qkv_bias
    assert not one.config.stack.attention.out_bias
    for name, tensor in other.transformer.state_dict().items():
        assert torch.equal(one.transformer.state_dict()[name], tensor), name
    inputs = Inputs.of(tiny.ids(17))
    assert torch.equal(one.transformer(inputs), other.transformer(inputs))


def test_its_rows_stand_as_they_are(tmp_path: Path) -> None:
    """Read as a `llama`, the same rows would be moved: the two architectures differ in that alone."""
    tensors = _tensors()
    qwen, llama = (
        load_model(tiny_gguf.write(tmp_path / f"{name}.gguf", CONFIG, tensors, Kind.F32, name))
        for name in ("qwen2", "llama")
    )
    name = "stack.blocks.0.attention.q.weight"
    assert torch.equal(qwen.transformer.state_dict()[name], tensors["model.layers.0.self_attn.q_proj.weight"])
    assert torch.equal(
        llama.transformer.state_dict()[name], tensors["model.layers.0.self_attn.q_proj.weight"]
    )
    written = [(tmp_path / f"{name}.gguf").read_bytes() for name in ("qwen2", "llama")]
    row = tensors["model.layers.0.self_attn.q_proj.weight"][:2].numpy().tobytes()
    assert [row in content for content in written] == [True, False]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"attention__sliding_window": 16}, "attention.sliding_window"),
        ({"pooling_type": 1}, "pooling_type"),
        ({"rope__scaling__type": "yarn"}, "rope.scaling.type"),
        ({"attention__head_count": 3}, "attention.head_count"),
        ({"block_count": 2**20}, "1048576 layers"),
    ],
)
def test_metadata_that_is_not_understood_is_refused_by_name(
    tmp_path: Path, changed: dict[str, object], named: str
) -> None:
    file = tiny_gguf.write(tmp_path / "q.gguf", CONFIG, _tensors(), Kind.F32, "qwen2", **changed)
    with pytest.raises((ConfigError, CheckpointError)) as caught:
        load_model(file)
    assert named in caught.value.detail


@pytest.mark.parametrize("lost", ["model.layers.1.self_attn.k_proj.bias", "model.norm.weight"])
def test_a_missing_tensor_is_named(tmp_path: Path, lost: str) -> None:
    tensors = {name: tensor for name, tensor in _tensors().items() if name != lost}
    with pytest.raises(CheckpointError) as caught:
        load_model(tiny_gguf.write(tmp_path / "q.gguf", CONFIG, tensors, Kind.F32, "qwen2"))
    assert tiny_gguf.rename(lost) in caught.value.detail
