"""The front end for sound against its formula, frame by frame."""

import math

import pytest
import torch
from torch import Tensor

from model.audio import AudioFront
from model.config import AudioConfig, Learned

BINS, WIDTH, FRAMES = 5, 7, 6


@pytest.fixture
def front() -> AudioFront:
    built = AudioFront(AudioConfig(BINS, FRAMES), WIDTH, Learned(FRAMES, 0)).double()
    random = torch.Generator().manual_seed(0)
    for parameter in built.parameters():
        parameter.data = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
    return built.requires_grad_(requires_grad=False)


def _gelu(x: float) -> float:
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def _convolved(x: Tensor, conv: torch.nn.Conv1d, stride: int) -> Tensor:
    """Three frames at a time, zeros beyond both ends, then GELU."""
    assert conv.bias is not None
    padded = torch.nn.functional.pad(x, (1, 1))
    columns = [
        (conv.weight * padded[:, at : at + 3]).sum(dim=(1, 2)) + conv.bias
        for at in range(0, x.shape[1], stride)
    ]
    return torch.stack(columns, dim=1).map_(
        torch.zeros(1, dtype=torch.float64), lambda value, _: _gelu(value)
    )


def test_it_is_two_convolutions_and_positions(front: AudioFront) -> None:
    mel = torch.randn(2, BINS, 2 * FRAMES, dtype=torch.float64)
    places = torch.tensor([[3, 0, 1, 5, 4, 2]])
    found = front(mel, places)
    assert front.positions is not None
    for row in range(2):
        expected = _convolved(_convolved(mel[row], front.first, 1), front.second, 2).T
        torch.testing.assert_close(found[row], expected + front.positions.weight[places[0]])


def test_without_positions_there_are_none(front: AudioFront) -> None:
    mel = torch.randn(1, BINS, 2 * FRAMES, dtype=torch.float64)
    assert front.positions is not None
    difference = front(mel, torch.arange(FRAMES)[None]) - front(mel, None)
    torch.testing.assert_close(difference[0], front.positions.weight)


def test_two_spectrogram_frames_make_one_position(front: AudioFront) -> None:
    assert front(torch.zeros(1, BINS, 2 * FRAMES, dtype=torch.float64), None).shape == (1, FRAMES, WIDTH)
