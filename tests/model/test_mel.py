import math

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import WhisperFeatureExtractor

from model.config import AudioConfig
from model.errors import InputError, TooLong
from model.mel import SAMPLE_RATE, filters, log_mel, longest

WHISPER = AudioConfig(80, 1500)
RANDOM = torch.Generator().manual_seed(0)
TIME = torch.arange(5 * SAMPLE_RATE) / SAMPLE_RATE
SOUNDS = {
    "noise": torch.randn(70_001, generator=RANDOM) * 0.1,
    "tone": torch.sin(2 * math.pi * 440 * TIME),
    "sweep": torch.sin(2 * math.pi * (100 + 700 * TIME) * TIME) * TIME / 5,
    "silence": torch.zeros(16_000),
    "one sample": torch.ones(1),
    "30 s": torch.randn(30 * SAMPLE_RATE, generator=RANDOM),
}


@pytest.mark.parametrize("sound", SOUNDS.values(), ids=SOUNDS)
@pytest.mark.parametrize("bins", [80, 128])
def test_it_is_the_spectrogram_of_transformers(sound: Tensor, bins: int) -> None:
    extractor = WhisperFeatureExtractor(feature_size=bins)
    expected = extractor(sound.numpy(), sampling_rate=SAMPLE_RATE, return_tensors="pt").input_features[0]
    found = log_mel(sound, AudioConfig(bins, 1500))
    assert found.shape == (bins, 3000)
    assert (found - expected).abs().max() < 1e-5


@pytest.mark.parametrize("bins", [80, 128])
def test_the_filters_are_slaneys(bins: int) -> None:
    found = filters(bins)
    assert found.shape == (201, bins)
    assert np.abs(found.numpy() - WhisperFeatureExtractor(feature_size=bins).mel_filters).max() < 1e-12


def test_a_tone_is_loudest_in_its_band() -> None:
    found = log_mel(SOUNDS["tone"], WHISPER)[:, 100:400]
    centre = (filters(80) * torch.linspace(0, 8000, 201, dtype=torch.float64)[:, None]).sum(0) / filters(
        80
    ).sum(0)
    loudest = centre[found.mean(1).argmax()].item()
    assert abs(loudest - 440) < 40


def test_a_shorter_model_hears_less() -> None:
    config = AudioConfig(16, 20)
    assert longest(config) == 0.4
    assert log_mel(SOUNDS["noise"][:6400], config).shape == (16, 40)


def test_what_is_too_long_is_refused_not_cut() -> None:
    with pytest.raises(TooLong, match=r"lasts 30\.0 s, but this model hears 30 s") as caught:
        log_mel(torch.zeros(30 * SAMPLE_RATE + 1), WHISPER)
    assert caught.value.extra["limit"] == 30


@pytest.mark.parametrize("sound", [torch.zeros(0), torch.tensor([0.0, math.nan]), torch.tensor([math.inf])])
def test_what_is_no_sound_is_refused(sound: Tensor) -> None:
    with pytest.raises(InputError, match="empty or holds values"):
        log_mel(sound, WHISPER)
