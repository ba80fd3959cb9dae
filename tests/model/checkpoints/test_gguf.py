import contextlib
import struct
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFValueType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.checkpoints.gguf import GGUF
from model.checkpoints.llama_gguf import read_llama
from model.errors import AtlasError, CheckpointError, ConfigError
from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from tests import tiny, tiny_gguf

# Numbers that fp32, in which GGUF states them, holds exactly; widths that 8-bit blocks of 32 divide.
CONFIG = tiny.LLAMA | {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "hidden_act": "silu",
    "rms_norm_eps": 2.0**-7,
    "rope_theta": 777.0,
    "attention_bias": False,
    "mlp_bias": False,
}
VARIANTS: dict[str, dict[str, object]] = {
    "grouped": {},
    "multi-query, wide heads": {"num_key_value_heads": 1, "head_dim": 32},
    "multi-head, untied": {"num_key_value_heads": 4, "tie_word_embeddings": False},
    "biased": {"attention_bias": True, "mlp_bias": True},
}
SMALL = CONFIG | {
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "head_dim": 4,
    "num_attention_heads": 2,
    "intermediate_size": 6,
}


def _load(path: Path) -> LoadedModel:
    return load_model(path, device="cpu", dtype="float32")


def _small(folder: Path, **changed: object) -> Path:
    return tiny_gguf.write(folder / "small.gguf", SMALL, tiny.llama_tensors(SMALL), Kind.F32, **changed)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.Q8_0], ids=lambda kind: kind.name)
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_it_is_the_model_of_the_folder(tmp_path: Path, kind: Kind, variant: dict[str, object]) -> None:
    config = CONFIG | variant
    tensors = tiny.llama_tensors(config)
    file = tiny_gguf.write(tmp_path / "model.gguf", config, tensors, kind)
    folder = tiny.write(tmp_path / "folder", config, tiny_gguf.quantise(tensors, kind))
    one, other = _load(file), _load(folder)
    assert one.config == other.config
    for name, tensor in other.transformer.state_dict().items():
        assert torch.equal(one.transformer.state_dict()[name], tensor), name
    inputs = Inputs.of(tiny.ids(17))
    assert torch.equal(one.transformer(inputs), other.transformer(inputs))


def test_a_file_without_tokenizer_runs_ids_and_says_so(tmp_path: Path) -> None:
    loaded = _load(_small(tmp_path))
    assert loaded.encoder is None
    [notice] = loaded.notices
    assert "tokenizer" in notice


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"attention__sliding_window": 16}, "attention.sliding_window"),
        ({"expert_count": 8}, "expert_count"),
        ({"rope__scaling__type": "yarn"}, "rope.scaling.type"),
        ({"rope__scaling__factor": 2.0}, "rope.scaling.factor"),
        ({"rope__dimension_count": 2}, "rope.dimension_count"),
        ({"attention__value_length": 6}, "attention.value_length"),
        ({"attention__head_count": 3}, "attention.head_count"),
        ({"attention__head_count_kv": 3}, "key heads"),
        ({"vocab_size": 90}, "vocab_size"),
        ({"block_count": 3000}, "3000 layers"),
        ({"attention__layer_norm_rms_epsilon": -1.0}, "layer_norm_rms_epsilon"),
        ({"embedding_length": "wide"}, "embedding_length"),
        ({"no_such_thing": True}, "no_such_thing"),
    ],
)
def test_metadata_that_is_not_understood_is_refused_by_name(
    tmp_path: Path, changed: dict[str, object], named: str
) -> None:
    with pytest.raises((ConfigError, CheckpointError)) as caught:
        _load(_small(tmp_path, **changed))
    assert named in caught.value.detail


@pytest.mark.parametrize(
    ("key", "value"), [("rope__freq_base", 10000.0), ("attention__layer_norm_rms_epsilon", 1e-6)]
)
def test_metadata_changes_the_output(tmp_path: Path, key: str, value: float) -> None:
    inputs = Inputs.of(tiny.ids(17))
    own = _load(_small(tmp_path)).transformer(inputs)
    assert (_load(_small(tmp_path, **{key: value})).transformer(inputs) - own).abs().max() > 1e-3


@pytest.mark.parametrize("lost", ["model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"])
def test_a_missing_tensor_is_named(tmp_path: Path, lost: str) -> None:
    tensors = {name: tensor for name, tensor in tiny.llama_tensors(SMALL).items() if name != lost}
    with pytest.raises(CheckpointError) as caught:
        _load(tiny_gguf.write(tmp_path / "m.gguf", SMALL, tensors))
    assert tiny_gguf.rename(lost) in caught.value.detail


@pytest.mark.parametrize("rows", [6, 12])
def test_a_tensor_of_another_shape_is_named(tmp_path: Path, rows: int) -> None:
    file = _small(tmp_path)
    other = GGUF(file)
    checkpoint = read_llama(other)
    kept = other.tensor
    other.tensor = lambda name: torch.ones(rows, 8) if name == "blk.0.attn_q.weight" else kept(name)  # type: ignore[method-assign]
    shapes = {name: tuple(part.shape) for name, part in _load(file).transformer.state_dict().items()}
    with pytest.raises(CheckpointError, match=r"blk\.0\.attn_q\.weight the shape"):
        checkpoint.state_dict(shapes)


def test_an_unknown_tensor_is_named(tmp_path: Path) -> None:
    tensors = tiny.llama_tensors(SMALL) | {"model.layers.1.input_layernorm.weight": torch.ones(8)}
    with pytest.raises(CheckpointError, match=r"blk\.1\.attn_norm\.weight"):
        _load(tiny_gguf.write(tmp_path / "m.gguf", SMALL, tensors))


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    file = _small(tmp_path)
    file.write_bytes(file.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0mamba", 1))
    with pytest.raises(ConfigError, match="'mamba'"):
        _load(file)


@pytest.mark.parametrize(
    "content", [b"", b"GG", b"GGUF", b"GGUF\3\0\0\0", b"PK\3\4" * 50, b"GGUF\3\0\0\0" + b"\xff" * 60]
)
def test_what_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.gguf is not a readable GGUF file"):
        GGUF(file)


def test_a_count_that_the_file_cannot_hold_is_refused_at_once(tmp_path: Path) -> None:
    key = struct.pack("<Q1sI", 1, b"a", GGUFValueType.ARRAY)
    array = struct.pack("<IQ", GGUFValueType.UINT8, 1000) + b"\1" * 10
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key + array)
    with pytest.raises(CheckpointError, match=r"it ends after \d+ bytes"):
        GGUF(file)


@pytest.mark.parametrize("part", [0.001, 0.02, 0.1, 0.3, 0.5, 0.7, 0.99, 0.9999])
def test_a_cut_file_is_refused(tmp_path: Path, part: float) -> None:
    file = _small(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(CheckpointError, match=r"small\.gguf"):
        _load(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(data=st.data())
def test_damage_is_an_error_of_ours_or_none(tmp_path: Path, data: st.DataObject) -> None:
    """Flipped bytes may leave a readable file with other weights; anything else must be refused in words."""
    file = _small(tmp_path)
    damaged = bytearray(file.read_bytes())
    for place in data.draw(st.lists(st.integers(0, 2000), min_size=1, max_size=3)):
        damaged[place] = data.draw(st.integers(0, 255))
    file.write_bytes(damaged[: data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))])
    with contextlib.suppress(AtlasError):
        _load(file)
