"""The page “Scaling”: C5 as a reader tries it."""

import math

import pytest

from tests.browser.atlas import REFUSED
from tests.browser.learn import Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]


@pytest.mark.parametrize("d_k", [1, 16, 1024])
def test_the_variance_is_the_width(learn: Learn, d_k: int) -> None:
    learn.visit("scaling")
    learn.set("spread", d_k=d_k)
    error = 5 * d_k * math.sqrt((2 + 6 / d_k) / 20_000)
    assert learn.check("spread", "variance of q·k")["measured"] == pytest.approx(d_k, abs=error)
    assert number(learn.fact("spread", "variance")) == pytest.approx(d_k, abs=error)
    assert learn.check("spread", "variance after the rule")["expected"] == d_k
    learn.set("spread", rule="inv_sqrt")
    assert learn.check("spread", "variance after the rule")["measured"] == pytest.approx(1, abs=error / d_k)
    assert all(learn.checks("spread").values())


def test_factor_samples_and_seed_are_the_readers_own(learn: Learn) -> None:
    learn.visit("scaling")
    learn.set("spread", rule="own", factor=0.25, samples=5000)
    assert learn.check("spread", "variance after the rule")["expected"] == 4
    assert learn.fact("spread", "samples") == "5,000"
    first = learn.fact("spread", "variance")
    learn.set("spread", seed=1)
    assert learn.fact("spread", "variance") != first
    learn.set("spread", seed=0)
    assert learn.fact("spread", "variance") == first


def test_extremes_get_a_clear_answer(learn: Learn) -> None:
    learn.tolerate(REFUSED)
    learn.visit("scaling")
    learn.set("spread", d_k=65_536)
    assert "choose at most 5,035 samples" in learn.problem("spread")
    learn.set("spread", samples=100)
    assert learn.problem("spread") == ""
    assert learn.check("spread", "variance of q·k")["expected"] == 65_536
    learn.set("spread", d_k=0)
    assert learn.problem("spread") == "d_k: write a whole number between 1 and 65,536."
    learn.set("spread", d_k=1, seed="no number")
    assert "Seed: write" in learn.problem("spread")
    learn.set("spread", seed=3)
    assert "not normal" in learn.lab("spread").inner_text()


@pytest.mark.parametrize(("d_k", "nats", "weight"), [(16, 1.33, 0.59), (1024, 0.13, 0.95)])
def test_unscaled_softmax_saturates(learn: Learn, d_k: int, nats: float, weight: float) -> None:
    learn.visit("scaling")
    learn.set("saturation", d_k=d_k, rows=1000)
    assert number(learn.fact("saturation", "unscaled.entropy")) == pytest.approx(nats, abs=0.08)
    assert number(learn.fact("saturation", "unscaled.largest_weight")) == pytest.approx(weight, abs=0.03)
    assert number(learn.fact("saturation", "scaled.entropy")) == pytest.approx(3.7, abs=0.05)
    assert number(learn.fact("saturation", "scaled.largest_weight")) == pytest.approx(0.11, abs=0.01)


def test_the_jacobian_dies_where_it_is_measured_to_die(learn: Learn) -> None:
    learn.visit("scaling")
    learn.set("jacobian", d_k=1024, rows=1000)
    assert number(learn.fact("jacobian", "dead")) == pytest.approx(32, abs=6)
    assert number(learn.fact("jacobian", "largest_score")) == pytest.approx(83, abs=2.5)
    learn.set("jacobian", rule="inv_sqrt")
    assert number(learn.fact("jacobian", "dead")) == 0
    learn.set("jacobian", d_k=64, rule="none")
    assert number(learn.fact("jacobian", "dead")) == pytest.approx(0.4, abs=0.8)
    assert learn.fact("jacobian", "hundred_from") == "2,048"
    assert learn.fact("jacobian", "half_dead_from") == "4,096"


def test_the_gradient_that_reaches_the_query(learn: Learn) -> None:
    learn.visit("scaling")
    learn.lab("gradient")
    assert learn.fact("gradient", "rows") == "1,000"
    for seed in (1, 2):
        learn.set("gradient", seed=seed)
        assert number(learn.fact("gradient", "unscaled.median")) == pytest.approx(0.83, abs=0.2)
        assert number(learn.fact("gradient", "scaled.median")) == pytest.approx(0.168, abs=0.006)
        assert number(learn.fact("gradient", "peak")) in (16, 32, 64)
        assert number(learn.fact("gradient", "same_from")) in (4, 8, 16)
    learn.set("gradient", d_k=16_384)
    assert number(learn.fact("gradient", "unscaled.median")) < 1e-10
    assert number(learn.fact("gradient", "scaled.median")) == pytest.approx(0.17, abs=0.006)
    assert all(learn.checks("gradient").values())


def test_real_heads_follow_the_scale(learn: Learn) -> None:
    learn.visit("scaling")
    learn.lab("real")
    learn.page.locator('#real [data-pick="head"]').select_option("2")
    learn.lab("real")
    assert number(learn.fact("real", "raw_spread")) == number(learn.fact("real", "most_spread"))
    check = learn.check("real", "scaled spread of L0H2, row by row from q and k")
    assert number(learn.fact("real", "scaled_spread")) == pytest.approx(check["measured"], rel=1e-3)
    learn.lab("curve")
    own = number(learn.fact("curve", "all_own_entropy"))
    assert number(learn.fact("curve", "all_entropy")) == own
    learn.set("curve", rule="none")
    assert number(learn.fact("curve", "all_entropy")) < own / 2
    assert learn.fact("curve", "scale") == "1"
    learn.set("curve", model="smollm2")
    assert learn.fact("curve", "own_scale") == "1/√64"


def test_temperature_moves_a_head(learn: Learn) -> None:
    learn.visit("scaling")
    learn.lab("temperature")
    own = number(learn.fact("temperature", "own_entropy"))
    learn.set("temperature", times=10)
    assert number(learn.fact("temperature", "entropy")) < own / 2
    learn.set("temperature", times=0.01)
    assert number(learn.fact("temperature", "entropy")) > 99
    assert all(learn.checks("temperature").values())
