"""Sound files to samples: WAV and FLAC, mixed down to one channel at 16 kHz, and nothing of it silently."""

import io
from dataclasses import dataclass, replace

import soundfile
import torch
from torch import Tensor

from model.errors import InputError, TooLong
from model.mel import SAMPLE_RATE
from model.resample import resample

LONGEST_SECONDS = 120
_MOST_SAMPLES = 2**24
_RATES = range(4_000, 192_001)
_MOST_CHANNELS = 32
_BLOCK = 2**14
# A RIFF file counts its bytes after the first 8, in 32 bits.
_HEADER, _UNKNOWN = 8, 2**32 - 1


@dataclass(frozen=True)
class Sound:
    """Mono samples [N] in fp32 at 16 kHz. `notices` say what was changed to get them."""

    samples: Tensor
    notices: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / SAMPLE_RATE

    def start(self, seconds: float) -> "Sound":
        """Its first `seconds`, and a notice where that leaves something out."""
        kept = self.samples[: round(seconds * SAMPLE_RATE)]
        if len(kept) == len(self.samples):
            return self
        notice = f"Only the first {seconds:g} s of {self.seconds:.1f} s are heard."
        return replace(self, samples=kept, notices=(*self.notices, notice))


def read_sound(content: bytes) -> Sound:
    """The sound in the bytes of a WAV or FLAC file.

    Raises InputError where it is neither, damaged or empty, TooLong beyond two minutes. A file that claims
    more than it holds costs no memory: it is read in small blocks.
    """
    if content[:4] != b"fLaC" and (content[:4] not in (b"RIFF", b"RF64") or content[8:12] != b"WAVE"):
        raise InputError("The sound file is neither WAV nor FLAC: save it as one of these.")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            sound = _read(file)
    except (soundfile.SoundFileError, ValueError, TypeError) as error:
        raise InputError(f"The sound file cannot be read ({_reason(error)}): save it again.") from error
    if not _is_cut(content):
        return sound
    cut = f"The file was cut off: it holds {sound.seconds:.1f} s, less than its header says."
    return replace(sound, notices=(*sound.notices, cut))


def _read(file: soundfile.SoundFile) -> Sound:
    rate, channels, claimed = file.samplerate, file.channels, file.frames
    if rate not in _RATES or channels > _MOST_CHANNELS:
        raise InputError(
            f"The sound file has {channels} channels at {rate} Hz: "
            f"save it with at most {_MOST_CHANNELS}, at {_RATES[0]} to {_RATES[-1]} Hz."
        )
    mono = _mixed_down(file, min(_MOST_SAMPLES, LONGEST_SECONDS * rate))
    if not len(mono) or not mono.isfinite().all():
        raise InputError("The sound file holds no sound, or values that are no numbers: record it again.")
    notices = [
        f"{channels} channels were mixed down to one." if channels > 1 else "",
        f"The sound was resampled from {rate} Hz to {SAMPLE_RATE} Hz." if rate != SAMPLE_RATE else "",
        f"The file was cut off: it holds {len(mono) / rate:.1f} s of {claimed / rate:.1f} s."
        if len(mono) < claimed
        else "",
    ]
    return Sound(resample(mono, rate, SAMPLE_RATE), tuple(filter(None, notices)))


def _mixed_down(file: soundfile.SoundFile, most: int) -> Tensor:
    """The mean of the channels [N]. Raises TooLong beyond `most` samples."""
    blocks: list[Tensor] = [torch.empty(0)]
    count = 0
    while len(block := file.read(_BLOCK, dtype="float32", always_2d=True)):
        count += len(block)
        if count > most:
            seconds = most / file.samplerate
            raise TooLong(
                f"The sound lasts more than {seconds:.0f} s, the most that is read: cut it.", limit=seconds
            )
        blocks.append(torch.from_numpy(block).mean(dim=1))
    return torch.cat(blocks)


def _is_cut(content: bytes) -> bool:
    """Whether a WAV's header counts more bytes than there are. A streamed one counts none, or all ones."""
    counted = int.from_bytes(content[4:8], "little")
    return content[:4] == b"RIFF" and len(content) < counted + _HEADER < _UNKNOWN


def _reason(error: Exception) -> str:
    return str(getattr(error, "error_string", error)).strip().rstrip(".")
