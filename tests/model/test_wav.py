import io
import math
import struct

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError, TooLong
from model.wav import LONGEST_SECONDS, read_sound

TONE = np.sin(2 * math.pi * 440 * np.arange(16_000) / 16_000) * 0.5


def _file(samples: np.ndarray, rate: int = 16_000, kind: str = "WAV", subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "subtype", "error"),
    [
        ("WAV", "PCM_16", 1e-4),
        ("WAV", "PCM_24", 1e-6),
        ("WAV", "PCM_U8", 1e-2),
        ("WAV", "FLOAT", 1e-7),
        ("WAV", "DOUBLE", 1e-7),
        ("WAV", "ULAW", 2e-2),
        ("WAVEX", "PCM_16", 1e-4),
        ("RF64", "PCM_16", 1e-4),
        ("FLAC", "PCM_16", 1e-4),
        ("FLAC", "PCM_24", 1e-6),
    ],
)
def test_mono_at_16_khz_is_taken_as_it_is(kind: str, subtype: str, error: float) -> None:
    sound = read_sound(_file(TONE, kind=kind, subtype=subtype))
    assert sound.notices == ()
    assert sound.samples.dtype == torch.float32
    assert sound.seconds == 1
    assert np.abs(sound.samples.numpy() - TONE).max() < error


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
def test_channels_are_mixed_down_and_it_is_told(kind: str) -> None:
    sound = read_sound(_file(np.stack([TONE, -TONE / 2], axis=1), kind=kind))
    assert sound.notices == ("2 channels were mixed down to one.",)
    assert np.abs(sound.samples.numpy() - TONE / 4).max() < 1e-4


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_another_rate_is_resampled_and_it_is_told(rate: int) -> None:
    tone = np.sin(2 * math.pi * 440 * np.arange(rate) / rate) * 0.5
    sound = read_sound(_file(tone, rate))
    assert sound.notices == (f"The sound was resampled from {rate} Hz to 16000 Hz.",)
    assert len(sound.samples) == 16_000
    assert np.abs(sound.samples.numpy() - TONE)[200:-200].max() < 1e-3


def test_a_start_is_cut_only_where_asked_and_it_is_told() -> None:
    sound = read_sound(_file(TONE))
    assert sound.start(30) is sound
    short = sound.start(0.25)
    assert len(short.samples) == 4000
    assert short.notices == ("Only the first 0.25 s of 1.0 s are heard.",)


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
def test_what_is_too_long_is_refused(kind: str) -> None:
    with pytest.raises(TooLong, match=rf"more than {LONGEST_SECONDS} s"):
        read_sound(_file(np.zeros(4_000 * LONGEST_SECONDS + 1, np.float32), 4_000, kind=kind))
    assert (
        read_sound(_file(np.zeros(4_000 * LONGEST_SECONDS, np.float32), 4_000, kind)).seconds
        == LONGEST_SECONDS
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "neither WAV nor FLAC"),
        (b"ID3\4" * 50, "neither WAV nor FLAC"),
        (b"RIFF\0\0\0\0AVI ", "neither WAV nor FLAC"),
        (b"OggS" * 50, "neither WAV nor FLAC"),
        (b"fLaC", "cannot be read"),
        (b"RIFF\x24\0\0\0WAVE", "cannot be read"),
        (_file(TONE[:0]), "no sound"),
        (_file(np.array([0.0, np.nan]), subtype="FLOAT"), "no numbers"),
        (_file(np.array([0.0, np.inf]), subtype="DOUBLE"), "no numbers"),
        (_file(TONE, 2_000), "at 2000 Hz"),
        (_file(TONE, 400_000), "at 400000 Hz"),
        (_file(np.zeros((10, 40)), 16_000), "40 channels"),
    ],
)
def test_what_cannot_be_heard_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_sound(content)


def test_a_cut_wav_is_told() -> None:
    content = _file(TONE, subtype="PCM_16")
    sound = read_sound(content[: 44 + 2 * 4000])
    assert len(sound.samples) == 4000
    assert sound.notices == ("The file was cut off: it holds 0.2 s, less than its header says.",)


def _heard_or_refused(content: bytes) -> tuple[int, str]:
    """How many samples were heard, and what was said of it."""
    try:
        sound = read_sound(content)
    except InputError as error:
        return 0, error.detail
    return len(sound.samples), " ".join(sound.notices)


def test_a_cut_flac_is_told() -> None:
    content = _file(np.random.default_rng(0).normal(size=16_000) * 0.1, kind="FLAC")
    heard, said = _heard_or_refused(content[: len(content) // 2])
    assert heard < 16_000
    assert "was cut off" in said or "cannot be read" in said


def test_a_claimed_length_costs_no_memory() -> None:
    content = bytearray(_file(TONE, kind="FLAC"))
    # The last 36 bits before the checksum of STREAMINFO count the samples.
    content[21] |= 0x0F
    content[22:26] = b"\xff" * 4
    heard, said = _heard_or_refused(bytes(content))
    assert heard <= 16_000
    assert "was cut off" in said or "cannot be read" in said


@pytest.mark.parametrize("size", [0, 2**32 - 1])
def test_a_recorder_that_did_not_know_the_length_is_read(size: int) -> None:
    content = bytearray(_file(TONE, subtype="PCM_16"))
    content[4:8] = content[40:44] = struct.pack("<I", size)
    heard, said = _heard_or_refused(bytes(content))
    assert (heard, said) == (16_000, "") or "no sound" in said


@given(data=st.data(), kind=st.sampled_from(["WAV", "FLAC"]))
def test_flipped_and_cut_files_raise_nothing_else(data: st.DataObject, kind: str) -> None:
    content = bytearray(_file(TONE[:2000], kind=kind))
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, 99) | st.integers(0, len(content) - 1))] = data.draw(
            st.integers(0, 255)
        )
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    try:
        sound = read_sound(bytes(content[:cut]))
    except InputError:
        return
    assert sound.samples.isfinite().all()
