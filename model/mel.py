"""The log-mel spectrogram a Whisper encoder hears (Radford et al. 2022, section 2.2; `whisper/audio.py`)."""

import functools
import math

import torch
from torch import Tensor

from model.config import AudioConfig
from model.errors import InputError, TooLong

SAMPLE_RATE = 16_000
WINDOW, HOP = 400, 160
_STRIDE = 2
# Slaney's mel scale (Auditory Toolbox, 1998): linear up to 1 kHz, logarithmic above.
_LINEAR_HERTZ, _BREAK_HERTZ = 200 / 3, 1000.0
_LOG_STEP = math.log(6.4) / 27


def longest(config: AudioConfig) -> float:
    """Seconds of sound that a model's positions provide for."""
    return config.frames * _STRIDE * HOP / SAMPLE_RATE


def log_mel(samples: Tensor, config: AudioConfig) -> Tensor:
    """Spectrogram [M, 2S] of mono `samples` [N] at 16 kHz, silence after their end up to the model's length.

    log10 of the power in each mel band, bounded to 8 below its maximum, then (x + 4) / 4. Raises TooLong for
    more sound than the model has positions for, InputError for none or for values that are not finite.
    """
    length, seconds = config.frames * _STRIDE * HOP, len(samples) / SAMPLE_RATE
    if not len(samples) or not samples.isfinite().all():
        raise InputError("The sound is empty or holds values that are no numbers: record it again.")
    if len(samples) > length:
        raise TooLong(
            f"The sound lasts {seconds:.1f} s, but this model hears {longest(config):g} s: "
            "cut it to that length.",
            seconds=seconds,
            limit=longest(config),
        )
    padded = torch.nn.functional.pad(samples.float(), (0, length - len(samples)))  # [N']
    window = torch.hann_window(WINDOW, device=samples.device)
    waves = torch.stft(padded, WINDOW, HOP, window=window, return_complex=True)  # [201, N'/HOP + 1]
    power = waves[:, :-1].abs() ** 2  # [201, N'/HOP]
    bands = filters(config.mel_bins).to(power).T @ power  # [M, N'/HOP]
    log = bands.clamp(min=1e-10).log10()
    return (torch.maximum(log, log.max() - 8) + 4) / 4


@functools.cache
def filters(bins: int) -> Tensor:
    """Weights [201, M] of frequencies in mel bands: triangles of equal area (Slaney 1998), in fp64."""
    frequencies = torch.linspace(0, SAMPLE_RATE / 2, WINDOW // 2 + 1, dtype=torch.float64)  # [201]
    highest = _mel(SAMPLE_RATE / 2)
    corners = _hertz(torch.linspace(0, highest, bins + 2, dtype=torch.float64))  # [M + 2]
    widths = corners.diff()  # [M + 1]
    slopes = corners - frequencies[:, None]  # [201, M + 2]
    rising, falling = -slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]  # [201, M]
    area = 2 / (corners[2:] - corners[:-2])  # [M]
    return torch.minimum(rising, falling).clamp(min=0) * area


def _mel(hertz: float) -> float:
    if hertz < _BREAK_HERTZ:
        return hertz / _LINEAR_HERTZ
    return _BREAK_HERTZ / _LINEAR_HERTZ + math.log(hertz / _BREAK_HERTZ) / _LOG_STEP


def _hertz(mels: Tensor) -> Tensor:
    above = mels - _BREAK_HERTZ / _LINEAR_HERTZ
    return torch.where(above < 0, mels * _LINEAR_HERTZ, _BREAK_HERTZ * (above * _LOG_STEP).exp())
