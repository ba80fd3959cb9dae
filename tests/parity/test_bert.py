"""BERT against `transformers`, by component."""

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertModel, PreTrainedModel

from model.loading import load_model
from tests import tiny
from tests.parity.references import assert_peaked, load, ours, theirs

LONGEST = 48
LENGTHS = [1, 2, 17, LONGEST]
SEGMENTS = [0] * 7 + [1] * 6 + [2] * 4


@pytest.fixture(scope="module", params=[BertModel, BertForMaskedLM])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    masked = request.param is BertForMaskedLM
    folder = tiny.write(tmp_path_factory.mktemp("bert") / "b", tiny.BERT, tiny.bert_tensors(masked=masked))
    return load_model(folder, device="cpu", dtype="float32"), load(request.param, folder)


@pytest.mark.parametrize("length", LENGTHS)
def test_every_layer_agrees(pair, length: int) -> None:
    mine, reference = pair
    ids = tiny.ids(length)
    expected = theirs(reference, ids)
    if length > 2:
        assert_peaked(expected.attention)
    ours(mine, ids).assert_near(expected, 1e-5)


def test_text_pairs_agree(pair) -> None:
    mine, reference = pair
    ids = tiny.ids(len(SEGMENTS))
    expected = theirs(reference, ids, token_type_ids=torch.tensor([SEGMENTS]))
    result = ours(mine, ids, segments=SEGMENTS)
    result.assert_near(expected, 1e-5)
    assert (result.final - ours(mine, ids).final).abs().max() > 0.1, "segments must matter"


@pytest.mark.parametrize("masked", [False, True])
def test_fp64_agrees_to_its_last_digits(tmp_path: Path, masked: bool) -> None:
    tensors = {name: tensor.double() for name, tensor in tiny.bert_tensors(masked=masked).items()}
    folder = tiny.write(tmp_path, tiny.BERT, tensors)
    reference = load(BertForMaskedLM if masked else BertModel, folder, torch.float64)
    ids = tiny.ids(LONGEST)
    expected = theirs(reference, ids)
    assert expected.final.dtype == torch.float64
    assert_peaked(expected.attention)
    ours(load_model(folder, device="cpu", dtype="float64"), ids).assert_near(expected, 1e-10)


@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh", "relu", "silu", "swish"])
def test_activations_agree(tmp_path: Path, activation: str) -> None:
    config = tiny.BERT | {"hidden_act": activation, "num_hidden_layers": 1}
    folder = tiny.write(tmp_path, config, tiny.bert_tensors(config))
    expected = theirs(load(BertModel, folder), tiny.ids(9))
    ours(load_model(folder, device="cpu", dtype="float32"), tiny.ids(9)).assert_near(expected, 1e-5)


@pytest.mark.parametrize("kind", [BertModel, BertForMaskedLM, BertForPreTraining])
def test_folders_saved_by_transformers_agree(tmp_path: Path, kind: type[PreTrainedModel]) -> None:
    reference = kind(BertConfig(**tiny.BERT, attn_implementation="eager")).eval()
    random = torch.Generator().manual_seed(1)
    for name, parameter in reference.named_parameters():
        parameter.data = tiny.draw(name, tuple(parameter.shape), random, tiny.BERT_SPREAD)
    reference.save_pretrained(tmp_path)
    expected = theirs(reference, tiny.ids(17)) if kind is not BertForPreTraining else None
    result = ours(load_model(tmp_path, device="cpu", dtype="float32"), tiny.ids(17))
    if expected is None:
        with torch.no_grad():
            logits = reference(torch.tensor([tiny.ids(17)])).prediction_logits[0]
        torch.testing.assert_close(result.logits, logits, atol=1e-4, rtol=1e-5)
    else:
        result.assert_near(expected, 1e-5)


def test_past_every_threshold_agrees(tmp_path: Path) -> None:
    """More tokens than `scores.ROWS` and `ffn.POSITIONS` handle at once."""
    config = tiny.BERT | {"max_position_embeddings": 530, "num_hidden_layers": 2}
    folder = tiny.write(tmp_path, config, tiny.bert_tensors(config))
    expected = theirs(load(BertModel, folder), tiny.ids(530))
    ours(load_model(folder, device="cpu", dtype="float32"), tiny.ids(530)).assert_near(expected, 1e-5)
