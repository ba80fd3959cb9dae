"""The page on recurrence: steps, operations, paths, gradients and recall follow what is changed."""

import pytest

from tests.browser.atlas import REFUSED
from tests.browser.learn import Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]


@pytest.fixture
def page(learn: Learn) -> Learn:
    return learn.visit("recurrence")


def test_steps_follow_the_length_in_recurrent_nets_only(page: Learn) -> None:
    page.set("steps", length=37)
    assert page.fact("steps", "steps.recurrent") == "37"
    assert page.fact("steps", "steps.attention") == "1"
    assert all(page.checks("steps").values())
    assert page.check("steps", "torch.nn.RNN minus the formula")["measured"] < 1e-12
    assert page.charts("steps") == ["steps"]
    page.set("steps", length=90)
    assert page.check("steps", "GRU: steps at n = 90")["measured"] == 90
    assert page.check("steps", "causal attention: steps at n = 90")["measured"] == 1


def test_operations_cross_where_length_and_width_are_equal(page: Learn) -> None:
    page.set("operations", length=20, width=40)
    assert page.fact("operations", "fewer") == "self-attention"
    assert number(page.fact("operations", "recurrent_term")) == 20 * 40**2
    assert number(page.fact("operations", "attention_term")) == 20**2 * 40
    page.set("operations", length=40)
    assert page.fact("operations", "fewer") == "neither"
    page.set("operations", length=80)
    assert page.fact("operations", "fewer") == "the recurrent net"
    counted = page.check("operations", "LSTM: multiply-adds counted at n = 80")
    assert (counted["measured"], counted["holds"]) == (8 * 80 * 40**2, True)


def test_times_are_measured_for_all_nets_and_told(page: Learn) -> None:
    ran = page.set("time", length=8, width=8, rounds=4)
    assert (ran["length"], ran["rounds"]) == (8, 4)
    assert page.charts("time") == ["time"]
    assert page.fact("time", "rounds") == "4"
    for net in ("rnn", "lstm", "gru", "self_attention", "causal_attention"):
        assert number(page.fact("time", f"milliseconds.{net}")) > 0
    assert page.page.locator('#time [data-table="race"] tbody tr').count() == 3


def test_the_ways_follow_ends_that_are_moved_by_keyboard(page: Learn) -> None:
    page.set("paths", source=2, target=8, length=12)
    row = page.page.locator('#paths [data-route="recurrent"]')
    assert row.get_attribute("data-hops") == "6"
    page.page.locator('#paths [data-end="target"]').focus()
    page.page.keyboard.press("ArrowRight")
    page.page.wait_for_selector('#paths [data-route="recurrent"][data-hops="7"]', state="attached")
    page.page.keyboard.press("Home")
    page.page.wait_for_selector('#paths [data-route="recurrent"][data-hops="none"]', state="attached")
    page.lab("paths")
    assert page.fact("paths", "way") == "1 hop in self-attention and 1 hop in a window"
    assert all(page.checks("paths").values())
    labels = page.page.locator("#paths .place").all_text_contents()
    assert labels == ["source 2", "target 0"]
    assert page.fact("paths", "target") == "0"


def test_the_ways_follow_ends_that_are_dragged(page: Learn) -> None:
    page.set("paths", source=0, target=10, reach=2, length=11)
    handle = page.page.locator('#paths [data-end="source"]')
    handle.scroll_into_view_if_needed()
    box, rail = handle.bounding_box(), page.page.locator("#paths .rail").bounding_box()
    assert box is not None
    assert rail is not None
    page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.page.mouse.down()
    page.page.mouse.move(rail["x"] + 0.4 * rail["width"], box["y"] + box["height"] / 2, steps=5)
    page.page.mouse.up()
    page.page.wait_for_selector('#paths [data-route="recurrent"][data-hops="6"]', state="attached")
    page.lab("paths")
    assert page.fact("paths", "way") == (
        "6 hops in a recurrent net, 1 hop in self-attention and 3 hops in a window"
    )
    assert all(page.checks("paths").values())


def test_a_position_outside_gets_a_sentence(page: Learn) -> None:
    page.tolerate(REFUSED)
    page.lab("paths")
    page.set("paths", length=8)
    assert "target is position 14" in page.problem("paths")
    page.set("paths", target=7)
    assert page.problem("paths") == ""


def test_gradients_vanish_by_a_factor_and_explode_with_the_gain(page: Learn) -> None:
    page.set("gradients", distance=20, seeds=2)
    assert all(page.checks("gradients").values())
    near = number(page.fact("gradients", "kept.rnn"))
    assert near < 1e-4
    assert number(page.fact("gradients", "factor.attention")) == pytest.approx(1, abs=0.05)
    page.set("gradients", distance=40)
    assert number(page.fact("gradients", "kept.rnn")) < 1e-4 * near
    page.set("gradients", gain=4)
    assert number(page.fact("gradients", "factor.rnn")) > 1


def test_recall_is_trained_live_and_only_attention_spans_the_gap(page: Learn) -> None:
    page.set("recall", longest_gap=20, symbols=4, steps=60)
    assert page.charts("recall") == ["accuracy", "loss"]
    assert number(page.fact("recall", "chance")) == 25
    assert number(page.fact("recall", "last.attention")) > 90
    assert number(page.fact("recall", "last.rnn")) < 40
    assert all(page.checks("recall").values())


def test_an_rnn_can_only_guess_across_a_gap_that_no_gradient_crosses(page: Learn) -> None:
    page.set("recall", longest_gap=64)
    check = page.check("recall", "RNN at gap 64, whose gradient is lost on the way: no better than guessing")
    assert check["expected"] == 0.125
    assert check["holds"]


def test_training_can_be_stopped(page: Learn) -> None:
    lab = page.page.get_by_test_id("lab-recall")
    lab.scroll_into_view_if_needed()
    button = lab.locator(".run-lab")
    button.click()
    page.page.wait_for_function("node => node.textContent === 'Stop'", arg=button.element_handle())
    button.click()
    page.page.wait_for_function("node => node.textContent === 'Run'", arg=button.element_handle())
    page.lab("recall")
    assert page.problem("recall").startswith("Stopped before")
