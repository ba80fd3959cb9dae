"""With a cache each token runs once, and nothing but the work changes."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from model.cache import Cache
from model.plan import OWN, Plan
from model.transformer import Transformer
from tests import tiny_models as tiny

CAUSAL = [name for name, config in tiny.CONFIGS.items() if config.stack.name == "decoder"]
PLANS: list[list[dict[str, object]]] = [
    [],
    [{"kind": "set_mask", "rule": {"name": "window", "left": 2, "right": 0}, "sites": "decoder.self.*"}],
    [{"kind": "block", "query": 6, "key": 4, "sites": "decoder.self.*"}],
    [{"kind": "ablate_head", "heads": [1], "mode": "uniform", "sites": "decoder.self.*"}],
    [{"kind": "drop_sublayer", "sublayer": "ffn", "sites": "decoder.self.1"}],
]


def _in_parts(model: Transformer, ends: list[int], plan: Plan = OWN) -> Tensor:
    given, cache = tiny.inputs(model, ends[-1]), Cache()
    parts = [model(replace(given, ids=given.ids[:, :end]), plan, cache=cache) for end in ends]
    assert cache.tokens == ends[-1]
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("ends", [[1, 2, 3, 4, 5, 6, 7, 8, 9], [9], [4, 9], [5, 6, 9]])
def test_tokens_may_come_in_any_parts(name: str, ends: list[int]) -> None:
    model = tiny.build(name)
    tiny.assert_same(_in_parts(model, ends), model(tiny.inputs(model)))


@pytest.mark.parametrize("name", ["decoder, rotary, grouped", "encoder–decoder, relative"])
@pytest.mark.parametrize("steps", PLANS)
def test_plans_hold_for_later_tokens_too(name: str, steps: list[dict[str, object]]) -> None:
    model, plan = tiny.build(name), Plan.parse(steps)
    # A pair beyond the tokens so far would be refused.
    ends = [8, 9] if any(step["kind"] == "block" for step in steps) else [3, 4, 7, 9]
    tiny.assert_same(_in_parts(model, ends, plan), model(tiny.inputs(model), plan))


@pytest.mark.parametrize("name", tiny.BESIDE)
def test_the_encoder_runs_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, runs = tiny.build(name), []
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda *given: runs.append(1) or encode(*given))
    _in_parts(model, [1, 2, 3, 9])
    assert runs == [1]


def test_the_cache_holds_what_it_was_given_in_order() -> None:
    cache = Cache()
    k, v = torch.randn(2, 1, 2, 5, 3).unbind()
    cache.extend("decoder.self.0", k[:, :, :3], v[:, :, :3])
    both = cache.extend("decoder.self.0", k[:, :, 3:], v[:, :, 3:])
    assert torch.equal(both[0], k)
    assert torch.equal(both[1], v)
    assert cache.find("decoder.self.1") is None
    found = cache.find("decoder.self.0")
    assert found is not None
    assert torch.equal(found[0], k)


def test_caches_share_nothing() -> None:
    model = tiny.build("decoder, rotary, grouped")
    one, other = tiny.inputs(model, 5, seed=1), tiny.inputs(model, 5, seed=2)
    caches = Cache(), Cache()
    for end in range(1, 6):
        for given, cache in zip((one, other), caches, strict=True):
            last = model(replace(given, ids=given.ids[:, :end]), cache=cache)
    tiny.assert_same(last[:, -1], model(other)[:, -1])
