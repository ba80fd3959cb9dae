"""Greedy text: at each step the likeliest token of a run over all tokens so far."""

from dataclasses import replace

import pytest
import torch

from model.errors import PlanError
from model.generate import greedy
from model.plan import OWN, Plan
from model.transformer import Transformer
from tests import tiny_models as tiny

CAUSAL = [name for name, config in tiny.CONFIGS.items() if config.stack.name == "decoder"]


def _by_hand(model: Transformer, count: int, plan: Plan = OWN) -> list[int]:
    given = tiny.inputs(model, 4)
    for _ in range(count):
        token = model.logits(model(given, plan)[:, -1])[0].argmax()
        given = replace(given, ids=torch.cat((given.ids, token.view(1, 1)), dim=1))
    return given.ids[0, 4:].tolist()


@pytest.mark.parametrize("name", CAUSAL)
def test_the_likeliest_token_follows(name: str) -> None:
    model = tiny.build(name)
    assert list(greedy(model, tiny.inputs(model, 4), (), 12)) == _by_hand(model, 12)


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "ablate_head", "heads": [0, 1, 2], "sites": "decoder.self.*"},
        {"kind": "set_mask", "rule": {"name": "window", "left": 1, "right": 0}, "sites": "decoder.self.*"},
        {"kind": "set_position", "mode": "off", "sites": "decoder.self.*"},
    ],
)
def test_a_plan_holds_for_every_token(step: dict[str, object]) -> None:
    model, plan = tiny.build("encoder–decoder, relative"), Plan.parse([step])
    found = list(greedy(model, tiny.inputs(model, 4), (), 12, plan))
    assert found == _by_hand(model, 12, plan)
    assert found != _by_hand(model, 12)


def test_it_ends_before_a_token_that_ends_a_text() -> None:
    model = tiny.build("decoder, rotary, grouped")
    whole = _by_hand(model, 12)
    for stop in set(whole):
        found = list(greedy(model, tiny.inputs(model, 4), (stop, 999), 12))
        assert found == whole[: whole.index(stop)]


def test_it_ends_at_the_limit() -> None:
    model = tiny.build("decoder, rotary, grouped")
    assert [len(list(greedy(model, tiny.inputs(model, 4), (), limit))) for limit in (0, 1, 5)] == [0, 1, 5]


def test_a_plan_that_does_not_fit_is_refused() -> None:
    model = tiny.build("decoder, rotary, grouped")
    plan = Plan.parse([{"kind": "block", "query": 30, "key": 0}])
    with pytest.raises(PlanError):
        next(greedy(model, tiny.inputs(model, 4), (), 3, plan))


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "set_mask", "rule": {"name": "bidirectional"}},
        {"kind": "set_position", "mode": "reverse"},
        {"kind": "ablate_head", "heads": [0], "mode": "mean"},
    ],
)
def test_where_later_tokens_change_earlier_ones_the_text_is_still_that_of_whole_runs(
    step: dict[str, object],
) -> None:
    model, plan = tiny.build("decoder, rotary, grouped"), Plan.parse([step])
    assert list(greedy(model, tiny.inputs(model, 4), (), 8, plan)) == _by_hand(model, 8, plan)
