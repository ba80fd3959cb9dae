import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.errors import CheckpointError
from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from tests import tiny

INPUTS = Inputs.of(tiny.ids(9))


def _load(folder: Path, tensors: dict[str, Tensor], **changed: object) -> LoadedModel:
    return load_model(tiny.write(folder, tiny.BERT | changed, tensors), device="cpu", dtype="float32")


@pytest.mark.parametrize(
    "rename",
    [
        lambda name: f"bert.{name}",
        lambda name: re.sub(
            r"(LayerNorm)\.weight$", r"\1.gamma", re.sub(r"(LayerNorm)\.bias$", r"\1.beta", name)
        ),
    ],
    ids=["prefixed", "gamma and beta"],
)
def test_older_names_are_the_same_model(tmp_path: Path, rename) -> None:
    tensors = tiny.bert_tensors()
    renamed = {rename(name): tensor for name, tensor in tensors.items()}
    assert renamed.keys() != tensors.keys()
    own, other = _load(tmp_path / "own", tensors), _load(tmp_path / "other", renamed)
    assert torch.equal(own.transformer(INPUTS), other.transformer(INPUTS))


def test_what_is_not_shown_is_left_out(tmp_path: Path) -> None:
    more = {
        "bert.pooler.dense.weight": torch.ones(60, 60),
        "bert.pooler.dense.bias": torch.ones(60),
        "bert.embeddings.position_ids": torch.arange(48)[None],
        "cls.seq_relationship.weight": torch.ones(2, 60),
        "cls.seq_relationship.bias": torch.ones(2),
    }
    masked = tiny.bert_tensors(masked=True)
    tied = {
        "cls.predictions.decoder.weight": masked["bert.embeddings.word_embeddings.weight"].clone(),
        "cls.predictions.decoder.bias": masked["cls.predictions.bias"].clone(),
    }
    own, other = _load(tmp_path / "own", masked), _load(tmp_path / "other", masked | more | tied)
    assert torch.equal(own.transformer(INPUTS), other.transformer(INPUTS))
    assert own.notices == other.notices == ()


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_decoder_of_its_own_is_refused(tmp_path: Path, part: str) -> None:
    masked = tiny.bert_tensors(masked=True)
    own = {"weight": torch.ones(97, 60), "bias": torch.ones(97)}[part]
    with pytest.raises(CheckpointError, match=rf"cls\.predictions\.decoder\.{part}"):
        _load(tmp_path, masked | {f"cls.predictions.decoder.{part}": own})


def test_a_classifier_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    tensors = {f"bert.{name}": tensor for name, tensor in tiny.bert_tensors().items()}
    loaded = _load(
        tmp_path,
        tensors | {"classifier.weight": torch.ones(2, 60), "classifier.bias": torch.ones(2)},
        architectures=["BertForSequenceClassification"],
    )
    assert loaded.config.readout == "embedding"
    [notice] = loaded.notices
    assert "BertForSequenceClassification" in notice


@pytest.mark.parametrize("name", list(tiny.bert_tensors(masked=True)))
def test_no_tensor_can_be_missing(tmp_path: Path, name: str) -> None:
    tensors = tiny.bert_tensors(masked=True)
    del tensors[name]
    with pytest.raises(CheckpointError):
        _load(tmp_path, tensors)
