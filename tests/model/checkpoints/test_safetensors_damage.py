import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.checkpoints.source import Safetensors
from model.errors import AtlasError, CheckpointError
from model.loading import load_model
from tests import tiny

CONFIG = tiny.BERT | {"num_hidden_layers": 1, "hidden_size": 10, "intermediate_size": 6, "vocab_size": 12}
HEADER: dict[str, dict[str, Any]] = {
    "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
    "b": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
}


def _file(folder: Path, header: object, data: bytes = b"\0" * 12, *, size: int | None = None) -> Path:
    raw = json.dumps(header).encode()
    raw = struct.pack("<Q", len(raw) if size is None else size) + raw + data
    (folder / "model.safetensors").write_bytes(raw)
    return folder


def _with(name: str, **changed: object) -> dict[str, dict[str, Any]]:
    return HEADER | {name: HEADER[name] | changed}


def test_the_header_is_good_as_it_stands(tmp_path: Path) -> None:
    assert torch.equal(Safetensors(_file(tmp_path, HEADER)).tensor("a"), torch.zeros(2))


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (_with("b", data_offsets=[4, 8]), None),
        (_with("b", data_offsets=[0, 4]), None),
        (_with("b", data_offsets=[12, 16]), None),
        (_with("b", data_offsets=[12, 8]), None),
        (_with("b", data_offsets=[-4, 0]), None),
        (_with("a", shape=[3]), None),
        (_with("a", shape=[2**40]), None),
        (_with("a", shape=[2**40, 2**40]), None),
        (_with("a", shape=[2**40], data_offsets=[0, 2**42]), None),
        (_with("a", dtype="F16"), None),
        (_with("a", dtype="O"), None),
        (_with("a", shape="two"), None),
        ([1, 2], None),
        ({"a": 1}, None),
        (HEADER, 2**40),
        (HEADER, 2**63),
        (HEADER, 0),
        (HEADER, 7),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, header: object, size: int | None) -> None:
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        Safetensors(_file(tmp_path, header, size=size))


fuzz = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzz
@given(data=st.data())
def test_flipped_and_cut_files_raise_nothing_else(tmp_path: Path, data: st.DataObject) -> None:
    folder = tiny.write(tmp_path / "m", CONFIG, tiny.bert_tensors(CONFIG))
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    headed = struct.unpack("<Q", content[:8])[0] + 8
    places = st.integers(0, len(content) - 1) | st.integers(0, headed)
    for _ in range(data.draw(st.integers(0, 8))):
        content[data.draw(places)] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    file.write_bytes(content[:cut])
    try:
        load_model(folder)
    except AtlasError:
        return
    assert cut == len(content)


@fuzz
@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        Safetensors(tmp_path)
