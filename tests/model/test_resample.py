import math

import pytest
import torch
from torch import Tensor

from model.resample import resample

EDGE = 200


def _tone(hertz: float, rate: int, seconds: float = 0.5) -> Tensor:
    time = torch.arange(round(rate * seconds), dtype=torch.float64) / rate
    return torch.sin(2 * math.pi * hertz * time).float()


@pytest.mark.parametrize("rate", [4000, 8000, 11025, 16001, 22050, 44100, 48000, 96000, 192000])
def test_a_tone_stays_the_tone(rate: int) -> None:
    found = resample(_tone(440, rate) + 0.5 * _tone(1700, rate), rate, 16000)
    expected = _tone(440, 16000) + 0.5 * _tone(1700, 16000)
    assert abs(len(found) - 8000) <= 1
    assert (found[EDGE:-EDGE] - expected[EDGE : len(found) - EDGE]).abs().max() < 2e-5


@pytest.mark.parametrize(("rate", "hertz"), [(22050, 8700), (44100, 8600), (44100, 15900), (48000, 23000)])
def test_what_the_new_rate_cannot_hold_is_filtered_out(rate: int, hertz: float) -> None:
    assert resample(_tone(hertz, rate), rate, 16000)[EDGE:-EDGE].abs().max() < 1e-4


def test_a_constant_stays_constant() -> None:
    found = resample(torch.ones(44100), 44100, 16000)
    torch.testing.assert_close(found[EDGE:-EDGE], torch.ones(16000 - 2 * EDGE), atol=1e-6, rtol=0)


def test_the_same_rate_changes_nothing() -> None:
    sound = _tone(440, 16000)
    assert resample(sound, 16000, 16000) is sound


@pytest.mark.parametrize("count", [1, 2, 3, 440, 441, 442])
def test_the_length_is_rounded_up(count: int) -> None:
    assert len(resample(torch.ones(count), 44100, 16000)) == -(-count * 160 // 441)
