from dataclasses import MISSING, FrozenInstanceError, fields, is_dataclass, replace

import pytest

from model import config
from model.config import Learned, NoPosition, Rope
from tests import tiny

TREE = [
    value for value in vars(config).values() if is_dataclass(value) and value.__module__ == config.__name__
]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_nothing_has_a_default_that_could_be_silently_wrong(kind: type) -> None:
    """What has a default is a feature, and the default is that the model has it not."""
    absent = (MISSING, None, False, ())
    assert all(field.default in absent and field.default_factory is MISSING for field in fields(kind))


def test_configurations_are_values(tmp_path_factory: pytest.TempPathFactory) -> None:
    one, other = (tiny.bert(tmp_path_factory.mktemp("bert") / "b").config for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(FrozenInstanceError):
        one.stack.layers = 3  # type: ignore[misc]


def test_a_stack_names_its_sites_and_its_longest_input(tmp_path_factory: pytest.TempPathFactory) -> None:
    stack = tiny.llama(tmp_path_factory.mktemp("llama") / "l").config.stack
    assert stack.sites == ("decoder.self.0", "decoder.self.1", "decoder.self.2")
    for position, longest in ((Learned(9, 2), 7), (Rope(10.0, 4, 9), 9), (NoPosition(8), 8)):
        assert replace(stack, position=position).max_tokens == longest
