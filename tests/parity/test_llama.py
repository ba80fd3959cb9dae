"""LLaMA against `transformers`, by component, and against a small fp64 reference."""

import json
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from model.loading import LoadedModel, load_model
from tests import tiny
from tests.parity import llama_reference
from tests.parity.references import assert_peaked, load, ours, theirs

LONGEST = 48
VARIANTS: dict[str, dict[str, object]] = {
    "grouped, wide heads, every bias, tied": {},
    "multi-query, untied": {"num_key_value_heads": 1, "tie_word_embeddings": False, "hidden_act": "silu"},
    "multi-head, no bias": {"num_key_value_heads": 6, "attention_bias": False, "mlp_bias": False},
    "odd heads, only mlp bias": {"num_attention_heads": 3, "num_key_value_heads": 1, "attention_bias": False},
    "narrow heads, only attention bias": {
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "head_dim": 6,
        "mlp_bias": False,
    },
}


def _load(folder: Path) -> LoadedModel:
    return load_model(folder, device="cpu", dtype="float32")


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    config = tiny.LLAMA | request.param
    folder = tiny.write(tmp_path_factory.mktemp("llama") / "l", config, tiny.llama_tensors(config))
    return _load(folder), load(LlamaForCausalLM, folder)


@pytest.mark.parametrize("length", [1, 2, 17, LONGEST])
def test_every_layer_agrees(pair, length: int) -> None:
    mine, reference = pair
    ids = tiny.ids(length)
    expected = theirs(reference, ids)
    if length > 2:
        assert_peaked(expected.attention)
    ours(mine, ids).assert_near(expected, 1e-5)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_fp64_agrees_to_its_last_digits(tmp_path: Path, variant: dict[str, object]) -> None:
    config = tiny.LLAMA | variant | {"hidden_act": "gelu"}
    tensors = tiny.llama_tensors(config)
    loaded = load_model(tiny.write(tmp_path, config, tensors), device="cpu", dtype="float64")
    result = ours(loaded, tiny.ids(17))
    assert_peaked(result.attention)
    arrays = {name: tensor.double().numpy() for name, tensor in tensors.items()}
    stream, logits = llama_reference.run(config, arrays, tiny.ids(17))
    for found, expected in ((result.stream, stream), (result.logits, logits)):
        assert found.dtype == torch.float64
        assert abs(found.numpy() - expected).max() <= 1e-10 * max(1.0, abs(expected).max())


def test_the_rope_base_may_stand_in_any_of_the_places_it_had(tmp_path: Path) -> None:
    tensors = tiny.llama_tensors()
    bare = {name: value for name, value in tiny.LLAMA.items() if name != "rope_theta"}
    places: list[dict[str, object]] = [
        {"rope_theta": 777.0},
        {"rope_theta": 777.0, "rope_scaling": None},
        {"rope_theta": 777, "rope_scaling": {"type": "default"}},
        {"rope_parameters": {"rope_theta": 777.0, "rope_type": "default"}},
    ]
    folders = [tiny.write(tmp_path / str(n), bare | place, tensors) for n, place in enumerate(places)]
    expected = theirs(load(LlamaForCausalLM, folders[-1]), tiny.ids(17))
    runs = [ours(_load(folder), tiny.ids(17)) for folder in folders]
    runs[0].assert_near(expected, 1e-5)
    assert all(torch.equal(run.final, runs[0].final) for run in runs)
    default = ours(_load(tiny.write(tmp_path / "none", bare, tensors)), tiny.ids(17))
    assert (default.final - runs[0].final).abs().max() > 1e-3
    default.assert_near(theirs(load(LlamaForCausalLM, tmp_path / "none"), tiny.ids(17)), 1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_folders_saved_by_transformers_agree(tmp_path: Path, tied: bool) -> None:
    config = LlamaConfig(**tiny.LLAMA | {"tie_word_embeddings": tied}, attn_implementation="eager")
    reference = LlamaForCausalLM(config).eval()
    random = torch.Generator().manual_seed(1)
    for name, parameter in reference.named_parameters():
        parameter.data = tiny.draw(name, tuple(parameter.shape), random, tiny.LLAMA_SPREAD)
    reference.save_pretrained(tmp_path)
    assert "rope_parameters" in json.loads((tmp_path / "config.json").read_text())
    ours(_load(tmp_path), tiny.ids(17)).assert_near(theirs(reference, tiny.ids(17)), 1e-5)


def test_past_every_threshold_agrees(tmp_path: Path) -> None:
    """More tokens than `scores.ROWS` and `ffn.POSITIONS` handle at once."""
    config = tiny.LLAMA | {"max_position_embeddings": 530, "num_hidden_layers": 2}
    folder = tiny.write(tmp_path, config, tiny.llama_tensors(config))
    expected = theirs(load(LlamaForCausalLM, folder), tiny.ids(530))
    ours(_load(folder), tiny.ids(530)).assert_near(expected, 1e-5)
