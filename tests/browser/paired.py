"""Tiny random encoder–decoder models and a second of sound, so that their pages need no download."""

import json
import math
import struct
import wave
from dataclasses import replace
from pathlib import Path

from tests.model.small_tokenizers import byte_level
from tests.parity.families import ROWS

RATE = 16_000
PIECES = 300
ROW_OF = {"bart": "BART", "t5": "T5", "whisper": "Whisper", "gemma2": "Gemma 2"}


def write_paired(root: Path) -> Path:
    """Writes the folder `paired` of models that share one small tokenizer; returns it."""
    folder = root / "paired"
    for name, row_name in ROW_OF.items():
        row = next(row for row in ROWS if row.name == row_name)
        place = folder / name
        replace(row, config={**row.config, "vocab_size": PIECES}).reference().save_pretrained(place)
        (place / "tokenizer.json").write_text(json.dumps(byte_level(PIECES)), "utf-8")
    return folder


def write_sound(path: Path, seconds: float = 1.0) -> Path:
    """Writes a rising tone as a WAV file of one channel at 16 kHz."""
    samples = [round(8000 * math.sin(0.1 * i * (1 + i / RATE))) for i in range(round(seconds * RATE))]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return path
