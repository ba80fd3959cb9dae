"""What each intervention means: what is done by hand to weights or tensors does the same."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.config import Learned, NoPosition, layer_of
from model.errors import PlanError
from model.inputs import Inputs
from model.interventions import KINDS
from model.plan import Plan
from model.trace import SiteTrace
from model.transformer import Transformer
from tests import tiny_models as tiny

Step = dict[str, Any]
MODELS = {name: tiny.build(name) for name in tiny.NAMES}


@pytest.fixture(params=tiny.NAMES)
def model(request: pytest.FixtureRequest) -> Transformer:
    return MODELS[request.param]


def _first_sites(model: Transformer) -> list[str]:
    """The first layer's site of every kind: what it reads does not depend on what a plan does elsewhere."""
    return [site for site in model.config.sites if layer_of(site) == 0]


def _logits(ran: Any) -> Tensor:
    assert ran.logits is not None
    return ran.logits


# Block, window, scale


def test_a_blocked_pair_has_no_weight_and_the_others_share_it_out(model: Transformer) -> None:
    own = tiny.trace(model)
    for site in _first_sites(model):
        before = tiny.weights(own, site)
        key = int(before[1, 3].argmax())
        plan = [{"kind": "block", "query": 3, "key": key, "sites": site, "heads": [1, 2]}]
        after = tiny.weights(tiny.trace(model, plan), site)
        expected = before.clone()
        expected[1:3, 3, key] = 0
        tiny.assert_same(after, expected / expected.sum(-1, keepdim=True))
        tiny.assert_differ(after, before)


def test_outside_a_window_weights_are_zero_and_within_the_scores_are_the_models(model: Transformer) -> None:
    for site in _self_sites(model):
        plan = [{"kind": "set_mask", "rule": {"name": "window", "left": 2, "right": 1}, "sites": site}]
        ran = tiny.trace(model, plan)
        found = tiny.weights(ran, site)
        query, key = torch.arange(found.shape[1])[:, None], torch.arange(found.shape[2])
        inside = (key >= query - 2) & (key <= query + 1)
        assert found[:, ~inside].abs().max() == 0
        assert found[:, inside].min() > 0
        tiny.assert_same(found, torch.softmax(_masked(ran.sites[site], inside), -1))


def _masked(site: SiteTrace, inside: Tensor) -> Tensor:
    return site.attention(site.all_heads, range(site.queries), "biased").masked_fill(~inside, -torch.inf)


def _self_sites(model: Transformer) -> list[str]:
    return [site for site in model.config.sites if ".self." in site]


@pytest.mark.parametrize("factor", [2.5, -0.5, 0.0])
def test_times_f_is_every_query_times_f(model: Transformer, factor: float) -> None:
    scaled = copy.deepcopy(model)
    for site in model.config.sites:
        attention = scaled.attention_at(site)
        parts = [attention.q.weight] + ([] if attention.q.bias is None else [attention.q.bias])
        parts = [attention.q_norm.gain] if attention.q_norm is not None else parts
        if layer_of(site) == 0 or not model.config.stack_of(site).shared:
            for part in parts:
                part.data *= factor
    plan = [{"kind": "set_scale", "times": factor, "sites": "*"}]
    tiny.assert_same(_logits(tiny.trace(model, plan)), _logits(tiny.trace(scaled)))


# Heads


@pytest.mark.parametrize("heads", [[0], [1, 3], None])
def test_zeroing_a_head_is_surgery_on_w_o(model: Transformer, heads: list[int] | None) -> None:
    width = tiny.HEAD_WIDTH
    for site in model.config.sites:
        if model.config.stack_of(site).shared:
            continue
        cut = copy.deepcopy(model)
        for head in range(tiny.HEADS) if heads is None else heads:
            cut.attention_at(site).o.weight.data[:, head * width : (head + 1) * width] = 0
        plan = [{"kind": "ablate_head", "heads": heads, "sites": site}]
        tiny.assert_same(_logits(tiny.trace(model, plan)), _logits(tiny.trace(cut)))
        tiny.assert_differ(_logits(tiny.trace(model, plan)), _logits(tiny.trace(model)), 1e-4)


def _head_outputs(model: Transformer, site: str, plan: list[Step]) -> tuple[Tensor, Tensor]:
    """Heads' outputs [H, T, K] at a site as recorded, and what its attention adds to the stream [T, D]."""
    stack, kind, layer = site.split(".")
    kept = tiny.trace(model, plan, record=["head_out", "attn_out", "cross_out"]).kept
    name, added = ("cross", "cross_out") if kind == "cross" else ("attention", "attn_out")
    return kept[f"head_out/{name}"][stack, int(layer)], kept[added][stack, int(layer)]


def test_a_mean_head_says_the_same_at_every_position(model: Transformer) -> None:
    for site in _first_sites(model):
        own, _ = _head_outputs(model, site, [])
        changed, added = _head_outputs(
            model, site, [{"kind": "ablate_head", "mode": "mean", "heads": [2], "sites": site}]
        )
        expected = own.clone()
        expected[2] = own[2].mean(0, keepdim=True)
        tiny.assert_same(changed, expected)
        through = model.attention_at(site).o(expected.transpose(0, 1).flatten(1))
        after = getattr(tiny.block(model, site.partition(".")[0], 0), "attention_out_norm", None)
        tiny.assert_same(added, through if after is None else after(through))


def test_a_uniform_head_weighs_every_open_key_alike(model: Transformer) -> None:
    own = tiny.trace(model)
    for site in _first_sites(model):
        plan = [{"kind": "ablate_head", "mode": "uniform", "heads": [1], "sites": site}]
        ran = tiny.trace(model, plan)
        found, before = tiny.weights(ran, site), tiny.weights(own, site)
        seen = (before[1] > 0).double()
        tiny.assert_same(found[1], seen / seen.sum(-1, keepdim=True))
        tiny.assert_same(found[[0, 2, 3]], before[[0, 2, 3]])


def test_attention_given_by_hand_is_what_mixes_the_values(model: Transformer) -> None:
    for site in _first_sites(model):
        shape = tiny.weights(tiny.trace(model), site).shape[1:]
        given = torch.rand(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        plan = [{"kind": "set_attention", "weights": given.tolist(), "heads": [3], "sites": site}]
        own, _ = _head_outputs(model, site, [])
        changed, _ = _head_outputs(model, site, plan)
        ran = tiny.trace(model, plan)
        tiny.assert_same(tiny.weights(ran, site)[3], given)
        expected = own.clone()
        expected[3] = given @ ran.sites[site].v[ran.sites[site].key_head(3)]
        tiny.assert_same(changed, expected)


# Blocks


def _places(model: Transformer) -> list[tuple[str, int]]:
    return [(stack.name, layer) for stack in model.config.stacks for layer in range(stack.layers)]


def _parts(model: Transformer, stack: str) -> list[str]:
    has_cross = any(one.name == stack and one.cross for one in model.config.stacks)
    return ["attention", "cross", "ffn"] if has_cross else ["attention", "ffn"]


def _site_glob(stack: str, layer: int) -> str:
    return f"{stack}.self.{layer}"


def _without(model: Transformer, stack: str, layer: int, change: Callable[[nn.Module], None]) -> Transformer:
    changed = copy.deepcopy(model)
    change(tiny.block(changed, stack, layer))
    return changed


def test_without_a_norm_the_sublayer_reads_and_adds_as_if_there_were_none(model: Transformer) -> None:
    for stack, layer in _places(model):
        for part in _parts(model, stack):
            if any(one.shared for one in model.config.stacks):
                continue

            def change(block: nn.Module, part: str = part) -> None:
                for name in (f"{part}_norm", f"{part}_out_norm"):
                    if name in dict(block.named_children()):
                        setattr(block, name, nn.Identity())

            plan = [{"kind": "drop_norm", "sublayer": part, "sites": _site_glob(stack, layer)}]
            expected = tiny.trace(_without(model, stack, layer, change))
            tiny.assert_same(_logits(tiny.trace(model, plan)), _logits(expected), 1e-8)


def test_a_sublayer_left_out_leaves_the_stream_as_it_is(model: Transformer) -> None:
    for stack, layer in _places(model):
        for part in _parts(model, stack):
            plan = [{"kind": "drop_sublayer", "sublayer": part, "sites": _site_glob(stack, layer)}]
            ran = tiny.trace(model, plan, record=["resid", "mid", "attn_out", "cross_out", "ffn_out"])
            stream = _stream(ran, stack, layer, _parts(model, stack))
            if stream is None:
                other = "ffn_out" if part == "attention" else "attn_out"
                tiny.assert_same(
                    ran.resid[stack, layer + 1], ran.resid[stack, layer] + ran.kept[other][stack, layer]
                )
            else:
                place = _parts(model, stack).index(part)
                assert torch.equal(stream[place], stream[place + 1])
            name = {"attention": "attn_out", "cross": "cross_out", "ffn": "ffn_out"}[part]
            assert (stack, layer) not in ran.kept.get(name, {})
            if part != "ffn":
                kind = "self" if part == "attention" else "cross"
                assert f"{stack}.{kind}.{layer}" not in ran.sites


def test_a_residual_left_out_leaves_what_the_sublayer_makes(model: Transformer) -> None:
    for stack, layer in _places(model):
        for part in _parts(model, stack):
            plan = [{"kind": "drop_residual", "sublayer": part, "sites": _site_glob(stack, layer)}]
            ran = tiny.trace(model, plan, record=["resid", "mid", "attn_out", "cross_out", "ffn_out"])
            stream = _stream(ran, stack, layer, _parts(model, stack))
            added = {name: kept.get((stack, layer)) for name, kept in ran.kept.items()}
            if stream is None:
                tiny.assert_same(ran.resid[stack, layer + 1], added["attn_out"] + added["ffn_out"])
                continue
            place = _parts(model, stack).index(part)
            name = {"attention": "attn_out", "cross": "cross_out", "ffn": "ffn_out"}[part]
            expected = added[name]
            if any(one.name == stack and one.norm_placement == "post" for one in model.config.stacks):
                expected = getattr(tiny.block(model, stack, layer), f"{part}_norm")(expected)
            tiny.assert_same(stream[place + 1], expected)


def _stream(ran: Any, stack: str, layer: int, parts: list[str]) -> list[Tensor] | None:
    """The stream before, between and after the sublayers of a block; None where they stand side by side."""
    mid = {
        name: kept[stack, layer]
        for name, kept in ran.kept.items()
        if name.startswith("mid") and (stack, layer) in kept
    }
    if not mid:
        return None
    between = [mid[name] for name in ("mid/attention", "mid") if name in mid]
    assert len(between) == len(parts) - 1
    return [ran.resid[stack, layer], *between, ran.resid[stack, layer + 1]]


# Positions


def _positions(model: Transformer, stack: str, **change: Any) -> list[Step]:
    return [{"kind": "set_position", "sites": f"{stack}.self.*", **change}]


def _permuted(given: Inputs, order: Tensor, stack: str) -> Inputs:
    if stack == "encoder" and given.source is not None:
        return replace(given, source=replace(given.source, ids=given.source.ids[:, order]))
    return replace(given, ids=given.ids[:, order])


BOTH_WAYS = {"kind": "set_mask", "rule": {"name": "bidirectional"}}
PERMUTED = [
    (name, stack.name)
    for name, config in tiny.CONFIGS.items()
    for stack in config.stacks
    if name != "speech" or stack.name == "decoder"
]


@pytest.mark.parametrize(("name", "stack"), PERMUTED)
def test_without_positions_and_order_of_the_mask_permuted_inputs_give_permuted_outputs(
    name: str, stack: str
) -> None:
    model = MODELS[name]
    given = tiny.inputs(model)
    length = tiny.SOURCE_TOKENS if stack == "encoder" and given.source is not None else tiny.TOKENS
    order = torch.randperm(length, generator=torch.Generator().manual_seed(3))
    off = (
        []
        if isinstance(model.config.stacks[-1].position, NoPosition)
        else _positions(model, stack, mode="off")
    )
    free = [*off, BOTH_WAYS | {"sites": f"{stack}.self.*"}]
    causal = [*off, {"kind": "set_mask", "rule": {"name": "causal"}, "sites": f"{stack}.self.*"}]
    for plan, same in ((free, True), (causal, False)):
        one, other = (tiny.trace(model, plan, ran) for ran in (given, _permuted(given, order, stack)))
        if stack == "encoder" and given.source is not None:
            assert one.memory is not None
            assert other.memory is not None
            pairs = [(other.memory, one.memory[order]), (other.final, one.final)]
        else:
            pairs = [(other.final, one.final[order])]
        for found, expected in pairs:
            (tiny.assert_same if same else tiny.assert_differ)(found, expected)


def test_positions_alone_tell_permuted_inputs_apart() -> None:
    for name, stack in PERMUTED:
        model = MODELS[name]
        if isinstance(model.config.stacks[-1].position, NoPosition):
            continue
        given = tiny.inputs(model)
        length = tiny.SOURCE_TOKENS if stack == "encoder" and given.source is not None else tiny.TOKENS
        order = torch.arange(length).roll(2)
        plan = [BOTH_WAYS | {"sites": f"{stack}.self.*"}]
        one, other = (tiny.trace(model, plan, ran) for ran in (given, _permuted(given, order, stack)))
        if stack == "encoder" and given.source is not None:
            tiny.assert_differ(other.memory, one.memory[order])
        else:
            tiny.assert_differ(other.final, one.final[order])


MOVES: dict[str, Callable[[int], Tensor]] = {
    "reverse": lambda n: torch.arange(n).flip(0),
    "shift": lambda n: torch.arange(n) + 4,
    "shuffle": lambda n: torch.randperm(n, generator=torch.Generator().manual_seed(7)),
}


@pytest.mark.parametrize("mode", ["off", *MOVES])
def test_learned_positions_are_read_where_the_plan_says(mode: str) -> None:
    model = MODELS["encoder, learned, post-norm"]
    moved = copy.deepcopy(model)
    table = moved.embeddings.positions
    assert table is not None
    rows = table.weight.data.clone()
    offset = tiny.LEARNED.offset
    if mode == "off":
        table.weight.data.zero_()
    else:
        table.weight.data[offset : offset + tiny.TOKENS] = rows[MOVES[mode](tiny.TOKENS) + offset]
    plan = _positions(model, "encoder", mode=mode, by=4 if mode == "shift" else 0, seed=7)
    tiny.assert_same(_logits(tiny.trace(model, plan)), _logits(tiny.trace(moved)))
    tiny.assert_differ(_logits(tiny.trace(model, plan)), _logits(tiny.trace(model)))


@pytest.mark.parametrize("name", ["decoder, rotary, grouped", "decoder, ALiBi, scale by layer"])
@pytest.mark.parametrize("mode", ["off", *MOVES])
def test_positions_in_the_scores_are_those_the_plan_says(name: str, mode: str) -> None:
    """Moving positions alone equals moving tokens back, with the mask moved alike."""
    model = MODELS[name]
    given = tiny.inputs(model)
    free = BOTH_WAYS | {"sites": "*"}
    plan = [free, *_positions(model, "decoder", mode=mode, by=4 if mode == "shift" else 0, seed=7)]
    found = tiny.trace(model, plan, given).final
    if mode == "off":
        bare = replace(model.config, stack=replace(model.config.stack, position=NoPosition(tiny.LONGEST)))
        without = tiny.build(bare)
        without.load_state_dict(model.state_dict())
        expected = tiny.trace(without, [free], given).final
    elif mode == "shift":
        expected = tiny.trace(model, [free], given).final  # only distances matter
    else:
        places = MOVES[mode](tiny.TOKENS)
        back = torch.argsort(places)
        expected = tiny.trace(model, [free], replace(given, ids=given.ids[:, back])).final[places]
    tiny.assert_same(found, expected)


def test_relative_positions_move_with_the_plan_in_their_own_stack_alone() -> None:
    model = MODELS["encoder–decoder, relative"]
    given = tiny.inputs(model)
    assert given.source is not None
    own = tiny.trace(model, [], given)
    flipped = tiny.trace(
        model, [], replace(given, source=replace(given.source, ids=given.source.ids.flip(1)))
    )
    ran = tiny.trace(model, _positions(model, "encoder", mode="reverse"), given)
    assert ran.memory is not None
    assert flipped.memory is not None
    tiny.assert_same(ran.memory, flipped.memory.flip(0))
    tiny.assert_same(ran.final, flipped.final)
    tiny.assert_differ(ran.final, own.final)
    alone = tiny.trace(model, _positions(model, "decoder", mode="off"), given)
    assert own.memory is not None
    assert torch.equal(alone.memory, own.memory)
    tiny.assert_differ(alone.final, own.final)


def test_the_same_seed_shuffles_alike_and_another_otherwise(model: Transformer) -> None:
    if isinstance(model.config.stack.position, NoPosition):
        return
    name = model.config.stack.name
    runs = [tiny.trace(model, _positions(model, name, mode="shuffle", seed=seed)).final for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1])
    tiny.assert_differ(runs[0], runs[2])


def test_another_rope_base_is_a_model_with_that_base() -> None:
    model = MODELS["decoder, rotary, grouped"]
    rope = replace(tiny.ROPE, base=9.0)
    based = tiny.build(replace(model.config, stack=replace(model.config.stack, position=rope)))
    plan = _positions(model, "decoder", base=9.0)
    assert torch.equal(tiny.trace(model, plan).final, tiny.trace(based).final)
    tiny.assert_differ(tiny.trace(model, plan).final, tiny.trace(model).final)


@pytest.mark.parametrize(
    "name", ["decoder, rotary, grouped", "decoder, ALiBi, scale by layer", "encoder–decoder, relative"]
)
def test_positions_change_from_the_layer_the_plan_says(name: str) -> None:
    model = MODELS[name]
    own = tiny.trace(model, record=["resid"])
    ran = tiny.trace(model, _positions(model, "decoder", mode="off", from_layer=1), record=["resid"])
    assert torch.equal(ran.resid["decoder", 1], own.resid["decoder", 1])
    tiny.assert_differ(ran.resid["decoder", 2], own.resid["decoder", 2])
    every = tiny.trace(model, _positions(model, "decoder", mode="off"), record=["resid"])
    tiny.assert_differ(every.resid["decoder", 1], own.resid["decoder", 1])


# What holds for all of them


def _every_kind(model: Transformer) -> list[list[Step]]:
    site = model.config.sites[-1]
    stack, kind, layer = site.split(".")
    cross = kind == "cross"
    part = "cross" if cross else "attention"
    given = torch.rand(tiny.weights(tiny.trace(model), site).shape[1:]).tolist()
    steps: list[Step] = [
        {"kind": "set_mask", "rule": {"name": "window", "left": 2, "right": 9}, "sites": f"{stack}.self.*"},
        {"kind": "block", "query": 5, "key": 2, "sites": site},
        {"kind": "set_scale", "rule": "inv", "times": 3.0, "sites": site},
        {"kind": "ablate_head", "heads": [1], "sites": site},
        {"kind": "ablate_head", "heads": [1], "sites": site, "mode": "mean"},
        {"kind": "ablate_head", "heads": [0, 3], "sites": site, "mode": "uniform"},
        {"kind": "set_attention", "weights": given, "heads": [2], "sites": site},
        {"kind": "drop_sublayer", "sublayer": part, "sites": f"{stack}.self.{layer}"},
        {"kind": "drop_residual", "sublayer": part, "sites": f"{stack}.self.{layer}"},
        {"kind": "drop_norm", "sublayer": "ffn", "sites": f"{stack}.self.{layer}"},
    ]
    if not isinstance(model.config.stack.position, NoPosition):
        steps += _positions(model, stack, mode="shuffle")
    return [[step] for step in steps] + [[steps[0], steps[2], steps[4], steps[6], steps[-2]]]


def test_the_plans_here_are_of_every_kind() -> None:
    kinds = {step["kind"] for plan in _every_kind(MODELS["encoder–decoder, relative"]) for step in plan}
    assert kinds == set(KINDS)


def test_every_plan_changes_something_and_leaves_no_trace(model: Transformer) -> None:
    given = tiny.inputs(model)
    own = tiny.trace(model, [], given)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for plan in _every_kind(model):
        tiny.assert_differ(tiny.trace(model, plan, given).final, own.final, 1e-5)
        assert torch.equal(tiny.trace(model, [], given).final, own.final)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_trace_tells_the_attention_that_ran_whatever_the_plan(model: Transformer) -> None:
    """Its weights times its values are what the heads put out, unless the plan changed just that."""
    given = tiny.inputs(model)
    for plan in [[], *_every_kind(model)]:
        ran = tiny.trace(model, plan, given, record=["head_out"])
        for name, site in ran.sites.items():
            stack, kind, layer = name.split(".")
            mixed = ran.kept["head_out/cross" if kind == "cross" else "head_out/attention"][stack, int(layer)]
            for head in site.all_heads:
                changed = any(
                    step["kind"] == "ablate_head"
                    and step.get("mode", "zero") != "uniform"
                    and step["sites"] == name
                    and head in step["heads"]
                    for step in plan
                )
                if not changed:
                    expected = tiny.weights(ran, name)[head] @ site.v[site.key_head(head)]
                    tiny.assert_same(mixed[head], expected)


def test_fused_and_explicit_agree_whatever_the_plan(model: Transformer) -> None:
    given = tiny.inputs(model)
    for plan in [[], *_every_kind(model)]:
        parsed = Plan.parse(plan)
        tiny.assert_same(model(given, parsed), model(given, parsed, fused=False))


@pytest.mark.parametrize("name", ["decoder, rotary, grouped", "encoder–decoder, relative"])
def test_runs_at_the_same_time_do_not_mix(name: str) -> None:
    model = MODELS[name]
    given = tiny.inputs(model)
    plans = [Plan.parse(plan) for plan in [[], *_every_kind(model)]]
    alone = [model.trace(given, plan).final for plan in plans]
    with ThreadPoolExecutor(2) as pool:
        jobs = [(n, pool.submit(model.trace, given, plans[n])) for _ in range(6) for n in range(len(plans))]
        for n, job in jobs:
            assert torch.equal(job.result(60).final, alone[n])


MISFITS: list[tuple[str, list[Step], str]] = [
    ("decoder, no positions", [{"kind": "set_position", "mode": "off"}], "has no positions"),
    ("encoder, learned, post-norm", [{"kind": "set_position", "base": 3.0}], "rope base"),
    ("decoder, ALiBi, scale by layer", [{"kind": "set_position", "base": 3.0}], "rope base"),
    (
        "encoder, learned, post-norm",
        [{"kind": "set_position", "mode": "off", "from_layer": 1}],
        "later layer",
    ),
    ("encoder, learned, post-norm", [{"kind": "set_position", "mode": "shift", "by": 32}], "at most 31"),
    (
        "encoder, learned, post-norm",
        [{"kind": "set_position", "mode": "shift", "by": -3}],
        "leave this model",
    ),
    ("encoder–decoder, relative", [{"kind": "ablate_head", "heads": [0]}], "several kinds of attention"),
    (
        "encoder–decoder, relative",
        [{"kind": "block", "query": 9, "key": 0, "sites": "decoder.cross.0"}],
        "query 9",
    ),
    (
        "encoder–decoder, relative",
        [{"kind": "block", "query": 0, "key": 12, "sites": "decoder.cross.0"}],
        "key 12",
    ),
    ("decoder, rotary, grouped", [{"kind": "set_attention", "weights": [[1.0]], "heads": [0]}], "9 × 9"),
    (
        "encoder–decoder, relative",
        [{"kind": "set_attention", "weights": [[1.0] * 9] * 9, "sites": "decoder.cross.0"}],
        "9 × 12",
    ),
    (
        "decoder, rotary, grouped",
        [{"kind": "ablate_head", "heads": [0]}, {"kind": "ablate_head", "heads": [0], "mode": "mean"}],
        "twice",
    ),
    (
        "decoder, rotary, grouped",
        [{"kind": "drop_norm", "sublayer": "ffn"}, {"kind": "drop_norm", "sublayer": "ffn"}],
        "twice",
    ),
    ("decoder, rotary, grouped", [{"kind": "drop_norm", "sublayer": "ffn", "heads": [1]}], "heads"),
    ("decoder, rotary, grouped", [{"kind": "drop_sublayer", "sublayer": "cross"}], "cross"),
    ("decoder, rotary, grouped", [{"kind": "set_position", "mode": "off", "heads": [1]}], "heads"),
    (
        "decoder, rotary, grouped",
        [{"kind": "set_position", "mode": "off", "sites": "decoder.self.1"}],
        "from_layer",
    ),
    (
        "encoder–decoder, relative",
        [{"kind": "set_position", "mode": "off", "sites": "decoder.cross.*"}],
        "cross",
    ),
    ("decoder, rotary, grouped", [{"kind": "set_position", "mode": "off", "from_layer": 3}], "layer"),
]


@pytest.mark.parametrize(("name", "plan", "words"), MISFITS, ids=[f"{n} {w}" for n, _, w in MISFITS])
def test_what_does_not_fit_is_refused_in_words(name: str, plan: list[Step], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        tiny.trace(MODELS[name], plan)
    assert words in caught.value.detail
    assert caught.value.detail.endswith(".")


def test_shifting_as_far_as_the_table_goes_is_allowed() -> None:
    model = MODELS["encoder, learned, post-norm"]
    last = tiny.LEARNED.rows - tiny.LEARNED.offset - tiny.TOKENS
    for by in (-tiny.LEARNED.offset, last):
        assert isinstance(model.config.stack.position, Learned)
        tiny.assert_differ(
            tiny.trace(model, _positions(model, "encoder", mode="shift", by=by)).final,
            tiny.trace(model).final,
        )
