from collections.abc import Callable

import pytest

from model.checkpoints.attributes import LARGEST_SIZE, NO_EFFECT, Attributes
from model.errors import ConfigError


def _read(**values: object) -> Attributes:
    return Attributes(values, "config.json")


def test_values_are_read() -> None:
    attributes = _read(layers=3, eps=1e-5, base=10000, tied=True, act="gelu", scaling={"factor": 2})
    assert attributes.integer("layers") == 3
    assert attributes.number("eps") == 1e-5
    assert attributes.number("base") == 10000.0
    assert attributes.flag("tied", default=False)
    assert attributes.choice("act", {"gelu": 1, "relu": 2}) == 1
    assert attributes.mapping("scaling") == {"factor": 2}
    attributes.finish()


def test_defaults_stand_in_for_what_is_missing_or_null() -> None:
    attributes = _read(layers=None)
    assert attributes.integer("layers", 12) == 12
    assert attributes.number("eps", 1e-6) == 1e-6
    assert not attributes.flag("tied", default=False)
    assert attributes.choice("act", {"gelu": 1}, "gelu") == 1
    assert attributes.mapping("scaling") == {}
    assert not attributes.has("layers")
    attributes.finish()


BAD: list[tuple[Callable[[Attributes], object], list[object]]] = [
    (lambda read: read.integer("it"), [0, -1, 1.0, "3", True, [], LARGEST_SIZE + 1, 10**400, None]),
    (lambda read: read.number("it"), [0, -1.0, "3", False, float("inf"), float("nan"), 10**400, None]),
    (lambda read: read.flag("it", default=True), [0, 1, "true", {}]),
    (lambda read: read.choice("it", {"gelu": 1}), ["relu", 1, ["gelu"], None]),
    (lambda read: read.mapping("it"), [1, "x", []]),
    (lambda read: read.expect(it=1), [2, "1", [1]]),
]


@pytest.mark.parametrize(("use", "value"), [(use, value) for use, values in BAD for value in values])
def test_another_value_is_refused_by_name(use: Callable[[Attributes], object], value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        use(_read(it=value))
    assert caught.value.extra["attribute"] == "it"
    assert caught.value.detail.startswith("config.json ")
    assert " it" in caught.value.detail
    assert caught.value.detail.endswith(".")


def test_what_nobody_reads_is_refused_by_name() -> None:
    attributes = _read(layers=3, window=4, gate="x")
    attributes.integer("layers")
    with pytest.raises(ConfigError, match=r"gate = 'x', window = 4"):
        attributes.finish()


def test_what_has_no_effect_is_let_pass() -> None:
    attributes = Attributes(dict.fromkeys(NO_EFFECT, 1) | {"dropout": 0.1}, "config.json")
    attributes.no_effect("dropout", "not there")
    attributes.finish()


def test_a_division_must_come_out_even() -> None:
    assert _read().divide("hidden_size", 60, "heads", 5) == 12
    with pytest.raises(ConfigError, match=r"hidden_size = 60, which heads = 7"):
        _read().divide("hidden_size", 60, "heads", 7)
