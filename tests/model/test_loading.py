from pathlib import Path

import pytest
import torch

from model.errors import AtlasError, CheckpointError
from model.inputs import Inputs
from model.interventions import KINDS
from model.loading import load_model
from tests import tiny


def test_a_loaded_model_says_what_it_is(tmp_path: Path) -> None:
    assert tiny.llama(tmp_path).describe() == {
        "family": "llama",
        "stacks": ["decoder"],
        "layers": 3,
        "heads": 6,
        "width": 60,
        "max_tokens": 48,
        "readout": "logits",
        "own_mask": "causal",
        "supports": list(KINDS),
    }


@pytest.mark.parametrize(("masked", "readout"), [(True, "masked"), (False, "embedding")])
def test_bert_is_read_out_by_what_its_folder_holds(tmp_path: Path, masked: bool, readout: str) -> None:
    loaded = tiny.bert(tmp_path, masked=masked)
    assert loaded.config.readout == readout
    assert (loaded.transformer.head is None) == (readout == "embedding")
    assert loaded.describe()["own_mask"] == "bidirectional"


@pytest.mark.parametrize(
    ("dtype", "width"), [("float64", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2)]
)
def test_every_parameter_has_the_dtype_asked_for(tmp_path: Path, dtype: str, width: int) -> None:
    loaded = tiny.llama(tmp_path, dtype=dtype)
    assert {parameter.dtype for parameter in loaded.transformer.parameters()} == {getattr(torch, dtype)}
    assert loaded.dtype == dtype
    weights = sum(tensor.numel() for tensor in tiny.llama_tensors().values())
    assert loaded.bytes == weights * width, "tied weights must be shared and nothing else held"


def test_a_loaded_model_neither_trains_nor_drops_out(tmp_path: Path) -> None:
    transformer = tiny.bert(tmp_path).transformer
    assert not transformer.training
    assert not any(parameter.requires_grad or parameter.is_meta for parameter in transformer.parameters())


def test_low_precision_is_near_the_same_model(tmp_path: Path) -> None:
    inputs = Inputs.of(tiny.ids(9))
    exact = tiny.bert(tmp_path, num_hidden_layers=1).transformer(inputs)
    rounded = tiny.bert(tmp_path, num_hidden_layers=1, dtype="bfloat16").transformer(inputs)
    assert rounded.dtype == torch.bfloat16
    assert (exact - rounded).abs().max() < 0.2


def test_a_folder_without_tokenizer_runs_ids(tmp_path: Path) -> None:
    assert tiny.bert(tmp_path).encoder is None


def test_a_damaged_tokenizer_is_refused(tmp_path: Path) -> None:
    tiny.write(tmp_path, tiny.BERT, tiny.bert_tensors())
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load_model(tmp_path, device="cpu", dtype="float32")


@pytest.mark.parametrize("name", ["nothing", "weights.bin"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "weights.bin").write_bytes(b"x")
    with pytest.raises(AtlasError, match="neither a folder"):
        load_model(tmp_path / name, device="cpu", dtype="float32")
