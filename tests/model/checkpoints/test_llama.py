from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.errors import CheckpointError, ConfigError
from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from tests import tiny

INPUTS = Inputs.of(tiny.ids(9))


def _load(folder: Path, tensors: dict[str, Tensor], **changed: object) -> LoadedModel:
    return load_model(tiny.write(folder, tiny.LLAMA | changed, tensors), device="cpu", dtype="float32")


def test_a_bare_model_has_no_prefix(tmp_path: Path) -> None:
    tensors = tiny.llama_tensors()
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    own, other = _load(tmp_path / "own", tensors), _load(tmp_path / "bare", bare)
    assert torch.equal(own.transformer(INPUTS), other.transformer(INPUTS))


def test_a_tied_copy_and_derived_frequencies_are_left_out(tmp_path: Path) -> None:
    tensors = tiny.llama_tensors()
    more = {
        "lm_head.weight": tensors["model.embed_tokens.weight"].clone(),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(7),
    }
    own, other = _load(tmp_path / "own", tensors), _load(tmp_path / "more", tensors | more)
    assert torch.equal(own.transformer(INPUTS), other.transformer(INPUTS))
    with pytest.raises(CheckpointError, match=r"ties lm_head\.weight"):
        _load(tmp_path / "wrong", tensors | {"lm_head.weight": torch.ones(89, 60)})


def test_heads_are_as_wide_as_the_width_divided_where_nothing_is_said(tmp_path: Path) -> None:
    config = tiny.LLAMA | {"head_dim": 10}
    tensors = tiny.llama_tensors(config)
    own = _load(tmp_path / "own", tensors, head_dim=10)
    unsaid = _load(tmp_path / "unsaid", tensors, head_dim=None)
    assert own.config == unsaid.config
    assert torch.equal(own.transformer(INPUTS), unsaid.transformer(INPUTS))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"head_dim": 13}, "must be even"),
        ({"num_key_value_heads": 4}, "share 4 key heads"),
        ({"head_dim": None, "num_attention_heads": 7, "num_key_value_heads": 7}, "does not divide"),
    ],
)
def test_shapes_that_cannot_be_are_refused(tmp_path: Path, changed: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _load(tmp_path, tiny.llama_tensors(), **changed)


@pytest.mark.parametrize("name", list(tiny.llama_tensors(tiny.LLAMA | {"tie_word_embeddings": False})))
def test_no_tensor_can_be_missing(tmp_path: Path, name: str) -> None:
    tensors = tiny.llama_tensors(tiny.LLAMA | {"tie_word_embeddings": False})
    del tensors[name]
    with pytest.raises(CheckpointError) as caught:
        _load(tmp_path, tensors, tie_word_embeddings=False)
    assert caught.value.extra["tensor"] == name.removeprefix("model.")
