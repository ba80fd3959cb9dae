"""What a run records is what an independent computation gives, and only what was asked for is kept."""

from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from app import schemas
from app.services.limits import trace_bytes
from model.recorder import Recordable
from model.trace import Trace
from model.transformer import Transformer
from tests import tiny_models as tiny

ALL = tiny.EVERYTHING
SUBLAYERS = {"attention": "attn_out", "cross": "cross_out", "ffn": "ffn_out"}


@pytest.fixture(scope="module", params=tiny.NAMES)
def recorded(request: pytest.FixtureRequest) -> tuple[Transformer, Trace]:
    model = tiny.build(request.param)
    return model, tiny.trace(model, record=ALL)


def _blocks(model: Transformer) -> list[tuple[str, int, Any]]:
    return [
        (stack.name, n, tiny.block(model, stack.name, n))
        for stack in model.config.stacks
        for n in range(stack.layers)
    ]


def _before(ran: Trace, stack: str, layer: int, block: Any, part: str) -> Tensor:
    """The stream as it meets a sublayer."""
    if part == "attention" or block.parallel:
        return ran.resid[stack, layer]
    return ran.kept["mid" if part == "ffn" else "mid/attention"][stack, layer]


def _parts(block: Any) -> list[str]:
    return ["attention", *(["cross"] if block.cross is not None else []), "ffn"]


def _read(block: Any, x: Tensor, part: str) -> Tensor:
    """What a sublayer reads of the stream."""
    return x if block.placement == "post" else getattr(block, f"{part}_norm")(x)


def _after(block: Any, y: Tensor, part: str) -> Tensor:
    return getattr(block, f"{part}_out_norm")(y) if block.placement == "both" else y


def test_all_that_can_be_recorded_is_here() -> None:
    assert set(ALL) == set(get_args(Recordable)) == set(schemas.RECORDABLES)


def test_the_stream_goes_from_sublayer_to_sublayer(recorded: tuple[Transformer, Trace]) -> None:
    model, ran = recorded
    for stack, layer, block in _blocks(model):
        added = {part: ran.kept[SUBLAYERS[part]][stack, layer] for part in _parts(block)}
        if block.parallel:
            tiny.assert_same(ran.resid[stack, layer + 1], ran.resid[stack, layer] + sum(added.values()))
            continue
        after = {"attention": "mid" if block.cross is None else "mid/attention", "cross": "mid"}
        for part in _parts(block):
            x = _before(ran, stack, layer, block, part) + added[part]
            expected = getattr(block, f"{part}_norm")(x) if block.placement == "post" else x
            found = ran.resid[stack, layer + 1] if part == "ffn" else ran.kept[after[part]][stack, layer]
            tiny.assert_same(found, expected)


def test_the_last_states_are_the_streams_end_normed(recorded: tuple[Transformer, Trace]) -> None:
    model, ran = recorded
    ends = {model.config.stack.name: (model.stack, ran.final)}
    if model.encoder is not None:
        assert ran.memory is not None
        ends["encoder"] = (model.encoder.stack, ran.memory)
    for name, (stack, end) in ends.items():
        tiny.assert_same(end, stack.final_norm(ran.resid[name, stack.config.layers]))


def test_heads_through_w_o_are_what_attention_adds(recorded: tuple[Transformer, Trace]) -> None:
    model, ran = recorded
    for stack, layer, block in _blocks(model):
        for part in _parts(block)[:-1]:
            attention = block.cross if part == "cross" else block.attention
            heads = ran.kept[f"head_out/{part}"][stack, layer]  # [H, T, K]
            assert heads.shape[0] == tiny.HEADS
            added = sum(attention.contribution(head, heads[head]) for head in range(tiny.HEADS))
            if attention.o.bias is not None:
                added = added + attention.o.bias
            tiny.assert_same(ran.kept[SUBLAYERS[part]][stack, layer], _after(block, added, part))


def test_heads_are_weights_times_values(recorded: tuple[Transformer, Trace]) -> None:
    _, ran = recorded
    for name, site in ran.sites.items():
        stack, kind, layer = name.split(".")
        heads = ran.kept["head_out/cross" if kind == "cross" else "head_out/attention"][stack, int(layer)]
        weights = tiny.weights(ran, name)
        for head in site.all_heads:
            tiny.assert_same(heads[head], weights[head] @ site.v[site.key_head(head)])


def test_the_feed_forward_layer(recorded: tuple[Transformer, Trace]) -> None:
    model, ran = recorded
    for stack, layer, block in _blocks(model):
        x = _read(block, _before(ran, stack, layer, block, "ffn"), "ffn")
        ffn = block.ffn
        before = ran.kept["ffn_pre"][stack, layer]
        tiny.assert_same(
            before, nn.functional.linear(x, (ffn.gate or ffn.up).weight, (ffn.gate or ffn.up).bias)
        )
        if ffn.gate is None:
            after = 0.5 * before * (1 + torch.erf(before / 2**0.5))
        else:
            after = before * torch.sigmoid(before) * ffn.up(x)
        tiny.assert_same(ran.kept["ffn_act"][stack, layer], after)
        tiny.assert_same(ran.kept["ffn_out"][stack, layer], _after(block, ffn.down(after), "ffn"))


def test_norm_statistics_are_those_of_what_is_normed(recorded: tuple[Transformer, Trace]) -> None:
    model, ran = recorded
    for stack, layer, block in _blocks(model):
        for part in _parts(block):
            x = _before(ran, stack, layer, block, part)
            if block.placement == "post":
                x = x + ran.kept[SUBLAYERS[part]][stack, layer]
            found = ran.kept[f"norms/{part}_norm"][stack, layer]
            assert found.shape == (len(x), 2)
            for row, (mean, rms) in zip(x.tolist(), found.tolist(), strict=True):
                assert mean == pytest.approx(sum(row) / len(row), abs=1e-12)
                assert rms == pytest.approx((sum(value * value for value in row) / len(row)) ** 0.5)


def test_recording_changes_no_number(recorded: tuple[Transformer, Trace]) -> None:
    model, ran = recorded
    bare = tiny.trace(model)
    assert torch.equal(bare.final, ran.final)
    assert bare.kept == {}
    assert bare.kept_tensors == []


@pytest.mark.parametrize("what", [(), *[(one,) for one in ALL], ("mid", "norms"), ALL])
def test_nothing_is_kept_that_was_not_asked_for_and_its_size_was_known(
    recorded: tuple[Transformer, Trace], what: tuple[Recordable, ...]
) -> None:
    model, _ = recorded
    given = tiny.inputs(model)
    ran = model.trace(given, record=what, logit_positions=[0, 3])
    assert {name.partition("/")[0] for name in ran.kept} <= set(what)
    beside = model.config.encoder is not None
    possible = {one for one in what if one != "cross_out" or beside}
    assert {name.partition("/")[0] for name in ran.kept} == possible - (
        {"mid"} if _parallel(model) else set()
    )
    lengths = given.tokens, given.source_tokens
    assert trace_bytes(model.config, lengths, frozenset(what), 2, 8) == ran.nbytes


def _parallel(model: Transformer) -> bool:
    return model.config.stack.parallel


def test_recorded_tensors_are_of_one_layer_and_no_others_storage(recorded: tuple[Transformer, Trace]) -> None:
    """What is kept must not keep a larger tensor alive, which nobody counted."""
    _, ran = recorded
    tensors = [
        *ran.kept_tensors,
        ran.final,
        *(t for site in ran.sites.values() for t in (site.q, site.k, site.v)),
    ]
    for tensor in tensors:
        assert tensor.untyped_storage().nbytes() == tensor.nbytes
