"""What a plan comes to for a model and an input, how it is spelt, and what it says in words."""

from dataclasses import replace
from typing import Any

import pytest

from model.errors import PlanError
from model.interventions import KINDS, SetPosition
from model.plan import OWN, Plan, lengths
from model.rules import AllOf, Bidirectional, Blocked, Causal, Given, Uniform, Window
from tests import tiny_models as tiny

BESIDE = tiny.CONFIGS["encoder–decoder, relative"]
ALONE = tiny.CONFIGS["decoder, rotary, grouped"]
SIZES = tiny.TOKENS, tiny.SOURCE_TOKENS
Step = dict[str, Any]


def _three_heads(config: Any) -> Any:
    return replace(config.encoder.stack.attention, heads=3, kv_heads=3)


def _program(*steps: Step, config: Any = BESIDE) -> Any:
    return Plan.parse(list(steps)).program(config, *(SIZES if config.encoder else (tiny.TOKENS, 0)))


def _canonical(*steps: Step, config: Any = ALONE) -> Plan:
    return Plan.parse(list(steps)).canonical(config)


@pytest.mark.parametrize(
    ("site", "tokens", "expected"),
    [
        ("encoder.self.0", (9, 12), (12, 12)),
        ("decoder.self.1", (9, 12), (9, 9)),
        ("decoder.cross.1", (9, 12), (9, 12)),
        ("encoder.self.0", (9, 0), (9, 9)),
        ("decoder.self.0", (9, 0), (9, 9)),
    ],
)
def test_queries_and_keys_of_each_kind_of_site(
    site: str, tokens: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert lengths(site, *tokens) == expected


def test_no_plan_is_the_models_own() -> None:
    program = OWN.program(BESIDE, *SIZES)
    assert (program.outputs, program.positions, program.left_out) == ({}, {}, {})
    assert list(program.rules) == list(BESIDE.sites)
    masks = {"encoder.self": Bidirectional(), "decoder.self": Causal(), "decoder.cross": Bidirectional()}
    for site, rule in program.rules.items():
        assert rule.scales == (BESIDE.scale_of(site),) * tiny.HEADS
        assert rule.masks == (masks[site.rpartition(".")[0]],) * tiny.HEADS
        assert (rule.softcap, rule.places, rule.patterns) == (None, None, ())


def test_layers_keep_masks_and_scales_and_caps_of_their_own() -> None:
    config = tiny.CONFIGS["decoder, norms on both sides, soft-cap, windows"]
    rules = OWN.program(config, 9).rules
    assert [rule.shared_mask for rule in rules.values()] == [Window(3, 0), Causal(), Window(3, 0)]
    assert {rule.softcap for rule in rules.values()} == {3.0}
    by_layer = tiny.CONFIGS["decoder, ALiBi, scale by layer"]
    scales = [rule.shared_scale for rule in OWN.program(by_layer, 9).rules.values()]
    assert scales == [tiny.HEAD_WIDTH**-0.5 / number for number in (1, 2, 3)]


def test_a_block_adds_to_the_mask_of_its_layer() -> None:
    config = tiny.CONFIGS["decoder, norms on both sides, soft-cap, windows"]
    rules = _program({"kind": "block", "query": 5, "key": 4, "heads": [2]}, config=config).rules
    closed = Blocked(frozenset({(5, 4)}))
    assert rules["decoder.self.0"].masks[2] == AllOf((Window(3, 0), closed))
    assert rules["decoder.self.1"].masks[2] == AllOf((Causal(), closed))
    assert rules["decoder.self.1"].masks[1] == Causal()


def test_each_kind_goes_where_the_forward_looks_for_it() -> None:
    site = "decoder.cross.1"
    weights = [[1.0] * SIZES[1]] * SIZES[0]
    program = _program(
        {"kind": "ablate_head", "heads": [0], "sites": site},
        {"kind": "ablate_head", "heads": [1], "sites": site, "mode": "mean"},
        {"kind": "ablate_head", "heads": [2], "sites": site, "mode": "uniform"},
        {"kind": "set_attention", "heads": [3], "sites": site, "weights": weights},
        {"kind": "set_position", "mode": "reverse", "sites": "encoder.*"},
        {"kind": "drop_sublayer", "sublayer": "cross", "sites": "decoder.*.1"},
        {"kind": "drop_norm", "sublayer": "ffn", "sites": "decoder.self.1"},
        {"kind": "drop_residual", "sublayer": "attention", "sites": "encoder.self.2"},
    )
    assert program.outputs == {site: {0: "zero", 1: "mean"}}
    assert dict(program.rules[site].patterns) == {2: Uniform(), 3: Given(tuple(map(tuple, weights)))}
    assert program.rules["decoder.cross.0"].patterns == ()
    assert list(program.positions) == ["encoder"]
    assert isinstance(program.positions["encoder"], SetPosition)
    assert program.left_out == {
        ("decoder", 1): frozenset({"cross sublayer", "ffn norm"}),
        ("encoder", 2): frozenset({"attention residual"}),
    }


SPELLINGS: list[tuple[Step, Step]] = [
    ({"kind": "ablate_head", "heads": [3, 1, 3]}, {"kind": "ablate_head", "heads": [1, 3], "mode": "zero"}),
    ({"kind": "ablate_head", "heads": [0, 1, 2, 3]}, {"kind": "ablate_head"}),
    (
        {"kind": "drop_norm", "sublayer": "ffn", "sites": "decoder.self.*"},
        {"kind": "drop_norm", "sublayer": "ffn"},
    ),
    ({"kind": "set_position", "mode": "off", "sites": "*"}, {"kind": "set_position", "mode": "off"}),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_a_plan_has_one_spelling(one: Step, other: Step) -> None:
    assert _canonical(one) == _canonical(other)
    assert _canonical(one).interventions


MIXED = replace(
    BESIDE,
    encoder=replace(BESIDE.encoder, stack=replace(BESIDE.encoder.stack, attention=_three_heads(BESIDE))),
)


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "drop_sublayer", "sublayer": "ffn", "sites": "*"},
        {"kind": "ablate_head", "sites": "*"},
        {"kind": "ablate_head", "sites": "*", "heads": [0, 1, 2]},
        {"kind": "set_scale", "times": 2.0, "sites": "*"},
        {"kind": "set_position", "mode": "off", "sites": "*"},
        {"kind": "set_mask", "rule": {"name": "anticausal"}, "sites": "*.self.*"},
    ],
)
@pytest.mark.parametrize("config", [ALONE, BESIDE, MIXED])
def test_the_canonical_plan_means_what_the_plan_meant(step: Step, config: Any) -> None:
    """Also where a model has several kinds of attention, and stacks of different numbers of heads."""
    plan = Plan.parse([step])
    canonical = plan.canonical(config)
    assert canonical.canonical(config) == canonical
    sizes = SIZES if config.encoder else (tiny.TOKENS, 0)
    one, other = plan.program(config, *sizes), canonical.program(config, *sizes)
    assert one.rules == other.rules
    assert (one.outputs, one.left_out) == (other.outputs, other.left_out)
    assert one.positions.keys() == other.positions.keys()


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "set_position"},
        {"kind": "set_position", "mode": "shift", "by": 0},
        {"kind": "ablate_head", "heads": []},
        {"kind": "set_attention", "heads": [], "weights": [[1.0]]},
        {"kind": "set_mask", "rule": {"name": "causal"}},
        {"kind": "set_scale", "rule": "inv_sqrt"},
    ],
)
def test_what_changes_nothing_is_no_plan(step: Step) -> None:
    assert _canonical(step) == OWN


def test_a_mask_that_is_one_layers_own_but_not_anothers_stays() -> None:
    config = tiny.CONFIGS["decoder, norms on both sides, soft-cap, windows"]
    step: Step = {"kind": "set_mask", "rule": {"name": "causal"}}
    assert _canonical(step, config=config).interventions
    assert _canonical(step | {"sites": "decoder.self.1"}, config=config) == OWN


@pytest.mark.parametrize("mode", ["off", "reverse", "shuffle", "shift"])
def test_a_change_of_positions_stays(mode: str) -> None:
    assert _canonical({"kind": "set_position", "mode": mode, "by": 1}).interventions
    assert _canonical({"kind": "set_position", "base": 9.0}).interventions


WORDS: list[tuple[Step, str]] = [
    (
        {"kind": "ablate_head", "heads": [5], "sites": "decoder.self.3"},
        "output zeroed in heads 5 at decoder.self.3",
    ),
    ({"kind": "ablate_head", "mode": "mean"}, "output replaced by its mean"),
    ({"kind": "ablate_head", "mode": "uniform"}, "weights uniform"),
    ({"kind": "set_attention", "weights": [[1.0]]}, "weights given by hand"),
    ({"kind": "drop_sublayer", "sublayer": "cross"}, "cross left out"),
    ({"kind": "drop_residual", "sublayer": "ffn"}, "no residual around ffn"),
    ({"kind": "drop_norm", "sublayer": "attention"}, "no norm at attention"),
    ({"kind": "set_position", "mode": "off", "sites": "encoder.*"}, "no positions at encoder.*"),
    ({"kind": "set_position", "mode": "shuffle", "seed": 4}, "positions shuffled (seed 4)"),
    ({"kind": "set_position", "mode": "reverse", "from_layer": 2}, "positions reversed from layer 2"),
    ({"kind": "set_position", "mode": "shift", "by": -3}, "positions shifted by -3"),
    ({"kind": "set_position", "base": 500.0}, "own positions, rope base 500"),
]


@pytest.mark.parametrize(("step", "words"), WORDS)
def test_every_kind_has_words(step: Step, words: str) -> None:
    assert Plan.parse([step]).in_words() == words


def test_several_steps_are_told_one_after_the_other() -> None:
    both = Plan.parse([{"kind": "ablate_head"}, {"kind": "drop_norm", "sublayer": "ffn"}])
    assert both.in_words() == "output zeroed; no norm at ffn"


def test_a_plan_survives_json() -> None:
    for step, _ in WORDS:
        plan = Plan.parse([step])
        assert Plan.parse(plan.as_json()) == plan
    assert {step["kind"] for step, _ in WORDS} | {"set_mask", "block", "set_scale"} == set(KINDS)


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "set_position", "mode": "backwards"},
        {"kind": "set_position", "mode": "off", "base": 0.0},
        {"kind": "set_position", "mode": "off", "heads": [0]},
        {"kind": "set_position", "from_layer": -1},
        {"kind": "ablate_head", "mode": "half"},
        {"kind": "set_attention", "weights": [[-1.0]]},
        {"kind": "set_attention", "weights": [[float("nan")]]},
        {"kind": "set_attention"},
        {"kind": "drop_sublayer", "sublayer": "head"},
        {"kind": "drop_norm"},
        {"kind": "drop_residual", "sublayer": "ffn", "heads": [0]},
        {"kind": "leave_out"},
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(step: Step) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse([step])
    assert caught.value.detail.startswith("The plan cannot be read at step 0")
    assert caught.value.detail.endswith(".")


def test_weights_of_a_non_square_site_are_queries_by_keys() -> None:
    weights = [[1.0] * SIZES[1]] * SIZES[0]
    assert _program({"kind": "set_attention", "weights": weights, "sites": "decoder.cross.*"})
    turned = [list(row) for row in zip(*weights, strict=True)]
    with pytest.raises(PlanError, match="9 × 12, queries by keys"):
        _program({"kind": "set_attention", "weights": turned, "sites": "decoder.cross.*"})
