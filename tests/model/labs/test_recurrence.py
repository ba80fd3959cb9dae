"""Steps and operations, against counts that the lab does not make."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from model.labs.bench import Bench
from model.labs.nets import ATTENDING, NETS, RECURRENT, Net, Recurrent, build, inputs
from model.labs.parameters.recurrence import Recurrence
from model.labs.recurrence import follows_formula, formula, powers, run
from model.labs.steps import in_order, longest_chain, work


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(("length", "width"), [(1, 3), (2, 8), (7, 5), (20, 4)])
def test_multiply_adds_are_those_that_torch_counts(net: Net, length: int, width: int) -> None:
    module, x = build(net, width, seed=3), inputs(1, length, width, seed=4)
    with FlopCounterMode(display=False) as counter:
        module(x)
    assert work(module, x).multiply_adds == counter.get_total_flops() / 2 == formula(net, length, width)


@pytest.mark.parametrize("length", [1, 2, 9, 33])
def test_a_recurrent_net_takes_n_steps_and_attention_one(length: int) -> None:
    steps = {net: work(build(net, 4, 0), inputs(1, length, 4, 1)).steps for net in NETS}
    assert steps == {**dict.fromkeys(RECURRENT, length), **dict.fromkeys(ATTENDING, 1)}


def test_the_recurrent_cell_is_used_once_a_step() -> None:
    """The same count by calling the cell: what a person would write."""
    calls = []
    cell = nn.RNNCell(4, 4, dtype=torch.float64)
    cell.register_forward_hook(lambda *_: calls.append(1))
    net = build("RNN", 4, seed=0)
    assert isinstance(net, Recurrent)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in net.layer.state_dict().items()})
    x, state = inputs(1, 12, 4, seed=1), torch.zeros(1, 4, dtype=torch.float64)
    for step in x[0]:
        state = cell(step[None], state)
    assert torch.allclose(net(x)[0, -1], state[0], atol=1e-12)
    assert work(net, x).steps == len(calls) == 12


def test_the_longest_chain_takes_the_longest_way() -> None:
    x = torch.ones(1, requires_grad=True)
    long = x.tanh().tanh().tanh()
    order = in_order((long + x.tanh()).sum().grad_fn)
    assert longest_chain(order, lambda node: node.name().startswith("Tanh")) == 3


def test_torch_follows_the_formula() -> None:
    assert follows_formula(16, 30, seed=5) <= 1e-12


def test_a_wrong_formula_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "tanh", torch.sin)
    assert follows_formula(16, 30, seed=5) > 1e-3


def test_every_check_holds_and_the_facts_are_those_of_the_paper() -> None:
    found = run(Recurrence(length=48, width=16, seed=2), Bench())
    assert [check.name for check in found.checks if not check.holds] == []
    assert found.facts["steps"] == {"recurrent": 48, "attention": 1}
    assert (found.facts["recurrent_term"], found.facts["attention_term"]) == (48 * 16**2, 48**2 * 16)
    assert found.facts["operations_cross"] == [
        {"net": "RNN", "self-attention needs fewer": "at no length"},
        {"net": "LSTM", "self-attention needs fewer": "below n = 32"},
        {"net": "GRU", "self-attention needs fewer": "below n = 16"},
    ]


@pytest.mark.parametrize(("net", "length"), [("LSTM", 32), ("GRU", 16)])
def test_operations_are_equal_where_the_facts_say_they_cross(net: Net, length: int) -> None:
    x = inputs(1, length, 16, seed=0)
    assert work(build(net, 16, 0), x).multiply_adds == work(build("self-attention", 16, 0), x).multiply_adds


@pytest.mark.parametrize(
    ("length", "fewer"), [(8, "self-attention"), (16, "neither"), (32, "the recurrent net")]
)
def test_the_leading_terms_cross_at_n_equal_to_d(length: int, fewer: str) -> None:
    found = run(Recurrence(length=length, width=16), Bench())
    assert found.facts["fewer"] == fewer
    dominant = next(chart for chart in found.series if chart.id == "dominant")
    at = {line.name: dict(zip(line.x, line.y, strict=True)) for line in dominant.lines}  # type: ignore[union-attr]
    assert at["recurrent, n·d²"][16] == at["self-attention, n²·d"][16]


def test_what_is_too_large_to_count_is_said() -> None:
    found = run(Recurrence(length=256, width=512), Bench())
    assert found.facts["beyond"] == "RNN, LSTM, GRU and self-attention"
    assert found.series[1].title.endswith("the longest runs by the formula alone")
    assert all(check.holds for check in found.checks)


def test_lines_that_lie_on_each_other_are_one() -> None:
    chart = run(Recurrence(length=16), Bench()).series[0]
    assert [line.name for line in chart.lines] == ["RNN, LSTM and GRU", "self-attention and causal attention"]  # type: ignore[union-attr]


def test_lengths_double_up_to_the_longest() -> None:
    assert powers(2) == [1, 2]
    assert powers(12) == [1, 2, 4, 8, 12]
    assert powers(16) == [1, 2, 4, 8, 16]
