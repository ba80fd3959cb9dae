import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.checkpoints.pickle_source import PickledTensors
from model.errors import AtlasError, CheckpointError
from model.inputs import Inputs
from model.loading import load_model
from tests import tiny

TIED = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
TENSORS = {
    "a.x": torch.arange(6.0).reshape(2, 3),
    "a.y": torch.ones(4).half(),
    "b": TIED,
    "c": TIED,
    "d": TIED[1:].T,
}
FORMATS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
BERT = tiny.BERT | {"num_hidden_layers": 1, "hidden_size": 10, "intermediate_size": 6, "vocab_size": 12}


def _saved(content: object, *, zipped: bool = True) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def _folder(folder: Path, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "pytorch_model.bin").write_bytes(content)
    return folder


def _refused(folder: Path, content: bytes, match: str) -> CheckpointError:
    with pytest.raises(CheckpointError, match=match) as caught:
        PickledTensors(_folder(folder, content))
    assert "pytorch_model.bin" in caught.value.detail
    return caught.value


@FORMATS
def test_both_formats_are_read(tmp_path: Path, zipped: bool) -> None:
    source = PickledTensors(_folder(tmp_path / "m", _saved(OrderedDict(TENSORS), zipped=zipped)))
    assert source.origin == "m"
    assert source.names == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert source.tensor(name).dtype == tensor.dtype
        assert torch.equal(source.tensor(name), tensor)
    assert source.tensor("b").data_ptr() == source.tensor("c").data_ptr()


@FORMATS
def test_it_is_the_model_of_the_safetensors(tmp_path: Path, zipped: bool) -> None:
    tensors = tiny.bert_tensors(masked=True)
    expected = load_model(tiny.write(tmp_path / "s", tiny.BERT, tensors))
    tensors["cls.predictions.bias"] = torch.nn.Parameter(tensors["cls.predictions.bias"])
    folder = tiny.write_config(tmp_path / "p", tiny.BERT)
    found = load_model(_folder(folder, _saved(tensors, zipped=zipped)))
    inputs = Inputs.of(tiny.ids(17))
    assert torch.equal(found.transformer(inputs), expected.transformer(inputs))


def test_safetensors_are_preferred(tmp_path: Path) -> None:
    tiny.write(tmp_path, tiny.BERT, tiny.bert_tensors())
    assert load_model(_folder(tmp_path, b"no pickle")).family == "bert"


@FORMATS
def test_shards_hold_all_together(tmp_path: Path, zipped: bool) -> None:
    parts = [{"a.x": TENSORS["a.x"]}, {"a.y": TENSORS["a.y"], "b": TIED}]
    for number, part in enumerate(parts):
        (tmp_path / f"part-{number}.bin").write_bytes(_saved(part, zipped=zipped))
    place = {name: f"part-{number}.bin" for number, part in enumerate(parts) for name in part}
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": place}))
    source = PickledTensors(tmp_path)
    assert source.names == place.keys()
    assert torch.equal(source.tensor("b"), TIED)
    for changed, named in (
        (place | {"b": "part-0.bin"}, r"part-[01]\.bin (should hold|holds) the tensor b"),
        (place | {"b": "../part-1.bin"}, "points outside"),
        (place | {"b": "part-7.bin"}, r"part-7\.bin"),
    ):
        index.write_text(json.dumps({"weight_map": changed}))
        with pytest.raises(CheckpointError, match=named):
            PickledTensors(tmp_path)


class _Call:
    """Pickles as a call of anything."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def _legacy(main: bytes, keys: tuple[str, ...] = (), data: bytes = b"") -> bytes:
    """The old format around a pickle."""
    whole = _saved({}, zipped=False)
    stream = io.BytesIO(whole)
    for _ in range(3):
        pickle.load(stream)
    return whole[: stream.tell()] + main + pickle.dumps(list(keys), protocol=2) + data


@FORMATS
@pytest.mark.parametrize(
    ("content", "named"),
    [
        (_Call(os.system, "touch WITNESS"), r"posix\.system"),
        ({"a": TIED, "b": _Call(os.mkdir, "WITNESS")}, r"posix\.mkdir"),
        ({"a": _Call(eval, "open('WITNESS', 'w')")}, r"builtin.*\.eval"),
        ({"a": _Call(bytearray, 2**40)}, "bytearray"),
        ({"a": _Call(getattr, "x", "upper")}, "getattr"),
        ({"a": torch.nn.Linear(1, 1)}, r"torch\.nn\.modules\.linear\.Linear"),
        ({"a": np.float64(1)}, r"numpy.*\.scalar"),
        ({"a": torch.device("cpu")}, r"torch\.device"),
    ],
    ids=["os.system", "os.mkdir", "eval", "bytearray", "getattr", "module", "numpy", "device"],
)
def test_nothing_but_tensors_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool, content: object, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refusal = _refused(tmp_path / "m", _saved(content, zipped=zipped), named)
    assert "nothing of it run" in refusal.detail
    assert not (tmp_path / "WITNESS").exists()


@pytest.mark.parametrize("protocol", [0, 1, 3, 4, 5])
def test_no_protocol_hides_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.chdir(tmp_path)
    call = pickle.dumps({"a": _Call(os.system, "touch WITNESS")}, protocol=protocol)
    for content in (call, _legacy(call), _archive({"m/data.pkl": call})):
        _refused(tmp_path / "m", content, "refused and nothing of it run|neither a zip archive nor a pickle")
    assert not (tmp_path / "WITNESS").exists()


@FORMATS
@pytest.mark.parametrize(
    ("content", "named"),
    [
        ([TIED], "a list, not tensors"),
        (TIED, "a Tensor, not tensors"),
        ({}, "not tensors"),
        ({"epoch": 3, "a": TIED}, "'epoch', which is no tensor"),
        ({"state_dict": {"a": TIED}}, "'state_dict', which is no tensor"),
        ({7: TIED}, "7, which is no tensor"),
        ({"a": TIED[:0]}, r"gives a the shape \[0, 3\]"),
        ({"a": torch.ones(1).expand(2**20, 2**20)}, "claims a size|gives a the shape"),
        ({"a": torch.ones(1).expand(9, 9)}, r"gives a the shape \[9, 9\], but 4 bytes"),
    ],
)
def test_what_are_no_weights_is_refused(tmp_path: Path, zipped: bool, content: object, named: str) -> None:
    _refused(tmp_path / "m", _saved(content, zipped=zipped), named)


@FORMATS
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, zipped: bool) -> None:
    content = _saved({"a": TIED, "b": torch.ones(3)}, zipped=zipped)
    for end in (*range(0, len(content), 23), len(content) - 1):
        _refused(tmp_path / "m", content[:end], "readable|neither|claims|bytes|unpacks")


def _archive(entries: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def _entries(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_an_archive_that_unpacks_to_more_is_refused(tmp_path: Path) -> None:
    entries = _entries(_saved({"a": torch.zeros(2**18)}))
    packed = _archive(entries, zipfile.ZIP_DEFLATED)
    assert len(packed) < 2**16
    _refused(tmp_path / "m", packed, "unpacks to more than it holds")


def test_a_second_entry_of_one_name_is_refused(tmp_path: Path) -> None:
    entries = _entries(_saved({"a": TIED}))
    file = io.BytesIO(_archive(entries))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(file, "a") as archive:
        archive.writestr("archive/data.pkl", entries["archive/data.pkl"])
    _refused(tmp_path / "m", file.getvalue(), "two entries of one name")


@pytest.mark.parametrize("length", [0, 4, 44, 52, 4096])
def test_a_storage_of_another_length_is_refused(tmp_path: Path, length: int) -> None:
    entries = _entries(_saved({"a": TIED}))
    content = _archive(entries | {"archive/data/0": b"\0" * length})
    _refused(tmp_path / "m", content, "are needed|readable")


def test_a_storage_that_no_bytes_fill_is_refused(tmp_path: Path) -> None:
    """torch would hand out whatever its memory held before."""
    whole = _saved({"a": torch.zeros(8)}, zipped=False)
    stream = io.BytesIO(whole)
    for _ in range(3):
        pickle.load(stream)
    start = stream.tell()
    end = whole.index(b".", whole.index(b"\x89", start)) + 1
    _refused(tmp_path / "m", _legacy(whole[start:end]), "0 bytes of tensors where 40 are needed")


@pytest.mark.parametrize("count", [2**30, 2**62])
def test_a_claimed_size_is_checked_before_memory_is_taken(tmp_path: Path, count: int) -> None:
    whole = _saved({"a": torch.zeros(258)}, zipped=False)
    claim = pickle.dumps(count, protocol=2)[2:-1]
    assert whole.count(b"M\x02\x01") > 0
    _refused(tmp_path / "m", whole.replace(b"M\x02\x01", claim), f"claims a size of {count}")


fuzz = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzz
@given(data=st.data(), zipped=st.booleans())
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_flipped_and_cut_files_raise_nothing_else(tmp_path: Path, data: st.DataObject, zipped: bool) -> None:
    content = bytearray(_saved(tiny.bert_tensors(BERT), zipped=zipped))
    for _ in range(data.draw(st.integers(0, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    try:
        load_model(_folder(tiny.write_config(tmp_path / "m", BERT), bytes(content[:cut])))
    except AtlasError:
        return
    assert cut == len(content)


@fuzz
@given(
    content=st.binary(max_size=400), start=st.sampled_from([b"", b"PK\3\4", b"\x80\2", _legacy(b"")[:137]])
)
def test_random_bytes_are_refused(tmp_path: Path, content: bytes, start: bytes) -> None:
    _refused(tmp_path / "m", start + content, "readable|neither|refused|claims")
