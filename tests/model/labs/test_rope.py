"""Rotary positions against complex numbers in numpy, and against the published rules of scaling."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.rope import RopeLab
from model.labs.rope import run
from model.labs.turning import Turning

LAYOUTS = ("half-split", "interleaved")


def _expected(x: np.ndarray, position: float, base: float, layout: str) -> np.ndarray:
    """x turned, each plane one complex number times exp(i position ω)."""
    width = len(x)
    turn = np.exp(1j * position * base ** (-np.arange(0, width, 2) / width))
    if layout == "interleaved":
        turned = (x[0::2] + 1j * x[1::2]) * turn
        return np.stack((turned.real, turned.imag), axis=-1).ravel()
    half = width // 2
    turned = (x[:half] + 1j * x[half:]) * turn
    return np.concatenate((turned.real, turned.imag))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_turn_as_complex_numbers_do(layout: str) -> None:
    x = np.random.default_rng(0).normal(size=32)
    turning = Turning.of(RopeLab(d_k=32, base=500.0, layout=layout))  # type: ignore[arg-type]
    for position in (0, 1, 77, 32_768):
        found = turning.at(torch.from_numpy(x), position).numpy()
        assert np.allclose(found, _expected(x, position, 500.0, layout), atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaling", ["none", "linear", "llama3"])
@pytest.mark.parametrize(
    "given", [{}, {"d_k": 2, "length": 1}, {"d_k": 256, "m": 0, "n": 32_768, "length": 32_768}]
)
def test_every_check_holds(layout: str, scaling: str, given: dict[str, int]) -> None:
    result = run(
        RopeLab.model_validate({**given, "layout": layout, "scaling": scaling, "original": 64}), Bench()
    )
    assert [check.name for check in result.checks if not check.holds] == []
    relativity = result.checks[0]
    assert relativity.tolerance == 1e-9


def test_relativity_fails_where_the_rotation_depends_on_more_than_distance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = Turning.at
    monkeypatch.setattr(
        Turning,
        "at",
        lambda self, x, places: real(self, x, places) * (1 + 1e-6 * torch.as_tensor(places)[..., None]),
    )
    failed = {check.name.split(",")[0] for check in run(RopeLab(), Bench()).checks if not check.holds}
    assert "m and n moved together: largest change of the score" in failed
    assert "norm after turning by norm before" in failed


def test_both_layouts_give_other_scores_for_the_same_numbers() -> None:
    one, other = (run(RopeLab(layout=layout), Bench()).facts for layout in LAYOUTS)  # type: ignore[arg-type]
    assert float(one["score"]) == pytest.approx(float(other["score_other_layout"]), abs=1e-9)  # type: ignore[arg-type]
    assert abs(float(one["score"]) - float(other["score"])) > 0.1  # type: ignore[arg-type]


def test_linear_scaling_slows_every_plane_and_llama3_only_slow_ones() -> None:
    def waves(scaling: str) -> np.ndarray:
        turning = Turning.of(RopeLab(scaling=scaling, factor=8.0, original=8192, base=500_000.0))  # type: ignore[arg-type]
        return turning.wavelengths().numpy()

    plain = 2 * math.pi * 500_000.0 ** (np.arange(0, 64, 2) / 64)
    assert np.allclose(waves("none"), plain, rtol=1e-9)
    assert np.allclose(waves("linear"), 8 * plain, rtol=1e-9)
    llama = waves("llama3")
    fast, slow = plain < 8192 / 4, plain > 8192
    assert fast.any()
    assert slow.any()
    assert np.allclose(llama[fast], plain[fast], rtol=1e-9)
    assert np.allclose(llama[slow], 8 * plain[slow], rtol=1e-9)
    between = ~fast & ~slow
    assert between.any()
    assert ((llama[between] > plain[between]) & (llama[between] < 8 * plain[between])).all()


def test_no_score_exceeds_the_papers_bound_and_a_smaller_one_is_exceeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "|score| less the paper's bound, largest"
    for seed in range(20):
        found = {check.name: check for check in run(RopeLab(seed=seed, d_k=4), Bench()).checks}
        assert found[name].holds
    real = Turning.bound
    monkeypatch.setattr(Turning, "bound", lambda *given: real(*given) / 3)
    found = {check.name: check for check in run(RopeLab(d_k=4), Bench()).checks}
    assert not found[name].holds


def test_the_bound_is_attained_where_all_planes_agree() -> None:
    turning = Turning.of(RopeLab(d_k=2))
    q, k = torch.tensor([3.0, 4.0]).double(), torch.tensor([3.0, 4.0]).double()
    assert turning.bound(q, k, torch.tensor([0, 7])).tolist() == pytest.approx([25, 25])


@pytest.mark.parametrize(
    ("given", "fades"), [({}, True), ({"base": 1.0}, False), ({"d_k": 2}, False), ({"length": 1}, False)]
)
def test_it_is_said_to_fade_only_where_it_does(given: dict[str, float], fades: bool) -> None:
    facts = run(RopeLab.model_validate(given), Bench()).facts
    assert (facts["fades"], facts["stays"]) == (fades, not fades)


def test_the_decay_starts_at_one_and_falls() -> None:
    turning = Turning.of(RopeLab(d_k=128))
    bound = turning.decay(torch.tensor([0, 1, 10, 100])).numpy()
    speeds = 10_000.0 ** (-np.arange(64) / 64)
    by_hand = [np.abs(np.cumsum(np.exp(1j * d * speeds))).mean() for d in (0, 1, 10, 100)]
    assert np.allclose(bound, np.array(by_hand) / by_hand[0], atol=1e-12)
    assert bound[0] == 1
    assert bound[3] < 0.5


def test_the_products_of_the_planes_add_up_to_the_score() -> None:
    facts = run(RopeLab(), Bench()).facts
    assert facts["products"].sum().item() == pytest.approx(facts["score"].item())  # type: ignore[attr-defined]
    assert len(facts["planes"]) == 32  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"d_k": 65}, "even"),
        ({"scaling": "llama3", "low": 4.0, "high": 4.0}, "greater high"),
    ],
)
def test_what_cannot_be_turned_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(RopeLab.model_validate(given), Bench())


@pytest.mark.parametrize("base", [-3.0, 0.0, 0.5])
def test_every_base_that_is_too_small_gets_the_same_sentence(base: float) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1 "):
        RopeLab(base=base)
