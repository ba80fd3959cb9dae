import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model.checkpoints.source import Safetensors, WithoutPrefix
from model.errors import CheckpointError
from tests import tiny

TENSORS = {"a.x": torch.arange(6.0).reshape(2, 3), "a.y": torch.ones(4), "b": torch.zeros(1)}
INDEX = "model.safetensors.index.json"


def test_one_file_holds_all(tmp_path: Path) -> None:
    source = Safetensors(tiny.write(tmp_path / "one", {}, TENSORS))
    assert source.origin == "one"
    assert source.names == TENSORS.keys()
    assert all(torch.equal(source.tensor(name), tensor) for name, tensor in TENSORS.items())


def test_shards_hold_all_together(tmp_path: Path) -> None:
    tiny.write_sharded(tmp_path, {}, TENSORS)
    source = Safetensors(tmp_path)
    assert source.names == TENSORS.keys()
    assert all(torch.equal(source.tensor(name), tensor) for name, tensor in TENSORS.items())


def _rewrite(change: Callable[[dict[str, str]], object]) -> Callable[[Path], object]:
    def rewrite(folder: Path) -> object:
        index = json.loads((folder / INDEX).read_text())
        change(index["weight_map"])
        return (folder / INDEX).write_text(json.dumps(index))

    return rewrite


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a shard is missing": (
        lambda folder: (folder / "model-2-of-2.safetensors").unlink(),
        "model-2-of-2.safetensors",
    ),
    "no index": (lambda folder: (folder / INDEX).unlink(), "neither"),
    "index is no JSON": (lambda folder: (folder / INDEX).write_text("{"), INDEX),
    "index is no object": (lambda folder: (folder / INDEX).write_text("[]"), INDEX),
    "index has no map": (lambda folder: (folder / INDEX).write_text("{}"), INDEX),
    "map is a list": (lambda folder: (folder / INDEX).write_text('{"weight_map": []}'), INDEX),
    "index points outside": (_rewrite(lambda names: names.update(b="../secret.safetensors")), "../secret"),
    "index points to a root": (_rewrite(lambda names: names.update(b="/etc/passwd")), "/etc/passwd"),
    "index points to its parent": (_rewrite(lambda names: names.update(b="..")), r"\.\."),
    "index leaves out": (_rewrite(lambda names: names.pop("b")), "the tensor b"),
    "index makes up": (_rewrite(lambda names: names.update(c="model-1-of-2.safetensors")), "the tensor c"),
    "index misplaces": (
        _rewrite(lambda names: names.update({"b": "model-2-of-2.safetensors"})),
        "the tensor b",
    ),
    "a shard is cut": (
        lambda folder: (folder / "model-1-of-2.safetensors").write_bytes(b"\0" * 4),
        "model-1-of-2",
    ),
}


@pytest.mark.parametrize(("damage", "named"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named(tmp_path: Path, damage: Callable[[Path], object], named: str) -> None:
    tiny.write_sharded(tmp_path, {}, TENSORS)
    (tmp_path.parent / "secret.safetensors").write_bytes((tmp_path / "model-1-of-2.safetensors").read_bytes())
    damage(tmp_path)
    with pytest.raises(CheckpointError, match=named):
        Safetensors(tmp_path)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    torch.save(TENSORS, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"neither model\.safetensors"):
        Safetensors(tmp_path)


def test_a_prefix_is_taken_off(tmp_path: Path) -> None:
    source = WithoutPrefix(Safetensors(tiny.write(tmp_path, {}, TENSORS)), "a.")
    assert source.names == {"x", "y", "b"}
    assert torch.equal(source.tensor("x"), TENSORS["a.x"])
    assert torch.equal(source.tensor("b"), TENSORS["b"])


def test_two_tensors_must_not_become_one(tmp_path: Path) -> None:
    save_file({"a.x": torch.ones(1), "x": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="holds x twice"):
        WithoutPrefix(Safetensors(tmp_path), "a.")
