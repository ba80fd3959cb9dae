import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.errors import AtlasError, CheckpointError, ConfigError
from model.loading import load_model
from tests import tiny

SMALL = tiny.BERT | {"hidden_size": 10, "num_hidden_layers": 1, "intermediate_size": 7, "vocab_size": 9}


def _load(folder: Path) -> None:
    load_model(folder, device="cpu", dtype="float32")


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, CheckpointError, "has no config.json"),
        ("{", CheckpointError, "not readable JSON"),
        ("[" * 100_000, CheckpointError, "not readable JSON"),
        ("[]", CheckpointError, "not a JSON object"),
        ("{}", ConfigError, "model_type None"),
        ('{"model_type": "gpt9"}', ConfigError, "'gpt9'"),
        ('{"model_type": ["bert"]}', ConfigError, "xlm-roberta are"),
        ('{"model_type": "bert"}', CheckpointError, "neither model.safetensors"),
    ],
)
def test_what_is_no_readable_configuration_is_refused(
    tmp_path: Path, content: str | None, error: type[AtlasError], words: str
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(error) as caught:
        _load(tmp_path)
    assert words in caught.value.detail


def test_sharded_and_single_folders_are_the_same_model(tmp_path: Path) -> None:
    tensors = tiny.llama_tensors()
    tiny.write_sharded(tmp_path / "sharded", tiny.LLAMA, tensors)
    one = load_model(tiny.write(tmp_path / "one", tiny.LLAMA, tensors), device="cpu", dtype="float32")
    other = load_model(tmp_path / "sharded", device="cpu", dtype="float32")
    assert one.config == other.config
    state = one.transformer.state_dict()
    assert all(state[name].equal(tensor) for name, tensor in other.transformer.state_dict().items())


def test_claims_are_checked_before_anything_is_built(tmp_path: Path) -> None:
    tiny.write(tmp_path, SMALL | {"num_hidden_layers": 3000}, tiny.bert_tensors(SMALL))
    with pytest.raises(CheckpointError, match="claims 3000 layers"):
        _load(tmp_path)


@pytest.mark.parametrize("part", [0, 0.001, 0.1, 0.5, 0.99])
def test_a_cut_file_is_refused(tmp_path: Path, part: float) -> None:
    file = tiny.write(tmp_path, SMALL, tiny.bert_tensors(SMALL)) / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        _load(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_damage_is_an_error_of_ours_or_none(tmp_path: Path, data: st.DataObject) -> None:
    """Flipped bytes may leave a readable file with other weights; anything else must be refused in words."""
    folder = tiny.write(tmp_path, SMALL, tiny.bert_tensors(SMALL))
    file = folder / data.draw(st.sampled_from(["model.safetensors", "config.json"]))
    damaged = bytearray(file.read_bytes())
    header = min(len(damaged), 2500)
    for place in data.draw(st.lists(st.integers(0, header - 1), min_size=1, max_size=3)):
        damaged[place] = data.draw(st.integers(0, 255))
    file.write_bytes(damaged[: data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))])
    with contextlib.suppress(AtlasError):
        _load(folder)
