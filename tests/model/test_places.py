"""Where tokens are told they stand, and facts about the waves of 2017 that follow from their formula."""

import math

import pytest
import torch

from model.config import AlibiPosition, Learned, NoPosition, Rope, Sinusoidal
from model.embeddings import waves
from model.errors import PlanError
from model.interventions import SetPosition
from model.places import check_places, placed

WIDTH = 512


def _waves(count: int, *, interleaved: bool, width: int = WIDTH) -> torch.Tensor:
    return waves(torch.arange(count)[None], width, interleaved=interleaved)[0]


def _set(**change: object) -> SetPosition:
    return SetPosition.model_validate({"kind": "set_position"} | change)


@pytest.mark.parametrize("interleaved", [True, False])
def test_every_position_has_the_same_length(interleaved: bool) -> None:
    assert torch.allclose(
        _waves(2000, interleaved=interleaved).square().sum(-1), torch.tensor(WIDTH / 2, dtype=torch.float64)
    )


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize(("distance", "expected"), [(1, 249.10), (7, 187.86), (50, 131.09)])
def test_two_positions_have_a_product_that_depends_on_their_distance_alone(
    interleaved: bool, distance: int, expected: float
) -> None:
    table = _waves(600, interleaved=interleaved)
    products = (table[:-distance] * table[distance:]).sum(-1)
    assert products.max() - products.min() < 1e-9
    assert products[0].item() == pytest.approx(expected, abs=0.005)
    assert products[0].item() == pytest.approx(
        math.fsum(math.cos(distance / 10000 ** (2 * i / WIDTH)) for i in range(WIDTH // 2)), abs=1e-9
    )


def test_sine_and_cosine_alternate_or_stand_apart() -> None:
    alternating, apart = (_waves(5, interleaved=choice, width=6) for choice in (True, False))
    for place in range(5):
        angles = [place / 10000 ** (2 * i / 6) for i in range(3)]
        sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
        assert apart[place].tolist() == pytest.approx(sines + cosines)
        assert alternating[place].tolist() == pytest.approx(
            [value for both in zip(sines, cosines, strict=True) for value in both]
        )


POSITIONS = torch.arange(5)[None]


def test_where_a_plan_puts_the_tokens() -> None:
    assert torch.equal(placed(None, POSITIONS), POSITIONS)
    assert torch.equal(placed(_set(), POSITIONS), POSITIONS)
    assert placed(_set(mode="off"), POSITIONS) is None
    assert placed(_set(mode="reverse"), POSITIONS).tolist() == [[4, 3, 2, 1, 0]]
    assert placed(_set(mode="shift", by=-2), POSITIONS).tolist() == [[-2, -1, 0, 1, 2]]
    shuffled = placed(_set(mode="shuffle", seed=3), POSITIONS)
    assert sorted(shuffled[0].tolist()) == list(range(5))
    assert shuffled.tolist() != POSITIONS.tolist()
    assert torch.equal(placed(_set(mode="shuffle", seed=3), POSITIONS), shuffled)


FITTING = [
    (_set(mode="off"), Learned(8, 0)),
    (_set(mode="shift", by=3), Learned(8, 0)),
    (_set(mode="shift", by=-2), Learned(10, 2)),
    (_set(mode="shift", by=10**6), Rope(50.0, 4, 8)),
    (_set(mode="shift", by=-(10**6)), Sinusoidal(8, interleaved=True)),
    (_set(base=9.0), Rope(50.0, 4, 8)),
    (_set(mode="off", from_layer=1), AlibiPosition(8)),
]
MISFITS = [
    (_set(mode="off"), NoPosition(8), "has no positions"),
    (_set(base=9.0), AlibiPosition(8), "rope base"),
    (_set(mode="off", from_layer=1), Learned(8, 0), "enter with the embeddings"),
    (_set(mode="off", from_layer=1), Sinusoidal(8, interleaved=True), "enter with the embeddings"),
    (_set(mode="shift", by=4), Learned(8, 0), "shift 5 tokens by at most 3"),
    (_set(mode="shift", by=-1), Learned(8, 0), "table of 8"),
]


@pytest.mark.parametrize(("change", "position"), FITTING)
def test_what_fits(change: SetPosition, position: object) -> None:
    check_places(change, position, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("change", "position", "words"), MISFITS)
def test_what_does_not(change: SetPosition, position: object, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        check_places(change, position, 5)  # type: ignore[arg-type]
