import re
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from model.checkpoints.mapping import Ignore, Take, fill, take
from model.errors import CheckpointError


class Memory:
    """A source that holds its tensors in a dict."""

    origin = "here"

    def __init__(self, **tensors: Tensor) -> None:
        self.tensors = {name.replace("_", "."): tensor for name, tensor in tensors.items()}
        self.names = frozenset(self.tensors)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]


A, B = torch.ones(2, 3), torch.zeros(2, 3)
TABLE = [take("words", "embed", "head"), take("at.{layer}.q", "blocks.{layer}.q")]
SHAPES = {"embed": (2, 3), "head": (2, 3), "blocks.0.q": (2, 3), "blocks.1.q": (2, 3)}


def _fill(
    source: Memory, table: Sequence[Take] = TABLE, ignored: Sequence[Ignore] = (), **changed: tuple[int, ...]
) -> dict[str, Tensor]:
    return fill(source, table, ignored, 2, SHAPES | changed)


def test_every_layer_and_every_target_is_filled() -> None:
    state = _fill(Memory(words=A, at_0_q=B, at_1_q=A))
    assert {name: int(tensor.sum()) for name, tensor in state.items()} == {
        "embed": 6,
        "head": 6,
        "blocks.0.q": 0,
        "blocks.1.q": 6,
    }
    assert state["embed"] is state["head"], "tied weights are one tensor"


def test_a_change_is_made_on_the_way() -> None:
    table = [TABLE[0], take("at.{layer}.q", "blocks.{layer}.q", change=lambda tensor: tensor.mT)]
    state = _fill(Memory(words=A, at_0_q=B.mT, at_1_q=A.mT), table)
    assert state["blocks.1.q"].shape == (2, 3)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (Memory(words=A, at_0_q=A), "at.1.q"),
        (Memory(words=A, at_0_q=A, at_1_q=A, at_2_q=A), "at.2.q"),
        (Memory(words=A, at_0_q=A, at_1_q=A, bias=A), "bias"),
        (Memory(words=A, at_0_q=A.mT, at_1_q=A), "at.0.q"),
        (Memory(words=A, at_0_q=A[None], at_1_q=A), "at.0.q"),
        (Memory(words=A, at_0_q=A, at_1_q=A.to(torch.int8)), "at.1.q"),
    ],
    ids=["missing", "a layer too many", "unknown", "turned", "one axis too many", "whole numbers"],
)
def test_what_is_not_as_expected_is_named(source: Memory, named: str) -> None:
    with pytest.raises(CheckpointError, match=re.escape(named)) as caught:
        _fill(source)
    assert caught.value.extra["tensor"] == named
    assert caught.value.detail.startswith("here ")


def test_a_parameter_nobody_fills_is_named() -> None:
    with pytest.raises(CheckpointError, match="fills no extra"):
        _fill(Memory(words=A, at_0_q=A, at_1_q=A), extra=(1,))


def test_a_parameter_filled_twice_is_named() -> None:
    with pytest.raises(CheckpointError, match="fill head twice"):
        _fill(Memory(words=A, at_0_q=A, at_1_q=A, again=A), [*TABLE, take("again", "head")])


def test_a_target_the_model_lacks_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"has no blocks\.1\.k"):
        _fill(Memory(words=A, at_0_q=A, at_1_q=A, k=A), [*TABLE, take("k", "blocks.1.k")])


def test_ignored_tensors_are_matched_by_their_whole_names() -> None:
    rules = [Ignore(r"pooler\.\d", "not shown")]
    _fill(Memory(words=A, at_0_q=A, at_1_q=A, pooler_1=A), ignored=rules)
    with pytest.raises(CheckpointError, match=r"my\.pooler\.1"):
        _fill(Memory(words=A, at_0_q=A, at_1_q=A, my_pooler_1=A), ignored=rules)


@pytest.mark.parametrize("copy", [B, A[:1], A + 1e-6])
def test_a_tied_tensor_is_ignored_only_where_it_is_a_copy(copy: Tensor) -> None:
    rules = [Ignore("tied", "tied", copy_of="words")]
    assert "tied" not in _fill(Memory(words=A, at_0_q=A, at_1_q=A, tied=A.clone()), ignored=rules)
    with pytest.raises(CheckpointError, match="ties tied to words"):
        _fill(Memory(words=A, at_0_q=A, at_1_q=A, tied=copy), ignored=rules)
