import json

import pytest
from transformers import PreTrainedTokenizerFast

from model.checkpoints.tokenizer_files import load_tokenizer
from model.errors import CheckpointError
from tests.model.small_tokenizers import byte_level, sentence_piece, word_piece


def write(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_a_folder_without_tokenizer_has_none(tmp_path):
    assert load_tokenizer(tmp_path) is None


def test_a_folder_with_tokenizer(tmp_path):
    encoder = load_tokenizer(write(tmp_path, tokenizer=word_piece()))
    assert [t.text for t in encoder.encode("the animals").tokens] == ["[CLS]", "the", "animal", "s", "[SEP]"]
    assert encoder.label(encoder.mask_id) == "[MASK]"


@pytest.mark.parametrize("stated", ["animal", {"content": "animal", "lstrip": True}])
def test_the_mask_token_is_the_stated_one(tmp_path, stated):
    encoder = load_tokenizer(write(tmp_path, tokenizer=word_piece(), tokenizer_config={"mask_token": stated}))
    assert encoder.label(encoder.mask_id) == "animal"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("{", "not JSON"), ("[]", "JSON object"), ("{}", "damaged"), ('{"model": {"type": "?"}}', "damaged")],
)
def test_a_damaged_file_is_named(tmp_path, content, complaint):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match=complaint) as refusal:
        load_tokenizer(tmp_path)
    assert "tokenizer.json" in refusal.value.detail


@pytest.mark.parametrize(
    "config", [{}, {"add_bos_token": True}, {"add_bos_token": False, "add_eos_token": True}]
)
@pytest.mark.parametrize(
    "spec", [word_piece(), byte_level(), sentence_piece()], ids=["WordPiece", "byte-level", "SPM"]
)
def test_ids_are_those_of_transformers_whatever_the_config_states(tmp_path, spec, config):
    end = spec["added_tokens"][-1]["content"]
    write(tmp_path, tokenizer=spec, tokenizer_config={**config, "bos_token": end, "eos_token": end})
    reference = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    encoder = load_tokenizer(tmp_path)
    for text in ("hello hi", "The animals, didn't 25", "Karadžić 💩 …", " a  b\n"):
        assert encoder.encode(text).ids == reference(text, padding=False, truncation=False)["input_ids"]
