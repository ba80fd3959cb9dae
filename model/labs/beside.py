"""A source beside a target: what a lab gives a real encoder–decoder to hear or read, and to write."""

from dataclasses import dataclass

from torch import Tensor

from model.config import AudioConfig
from model.errors import InputError, TooLong
from model.inputs import Inputs
from model.labs.parameters.cross_attention import CrossAttention
from model.labs.reading import note
from model.loading import LoadedModel
from model.mel import HOP, SAMPLE_RATE, log_mel
from model.recordings import Recording, recording, recordings
from model.targets import frames, of_ids, started, written
from model.text import Encoded
from model.wav import read_sound

MOST_TOKENS = 128


@dataclass(frozen=True)
class Source:
    """What the encoder gets: tokens, with `mel` [1, M, 2S] and the `sounding` first frames where it hears."""

    encoded: Encoded
    mel: Tensor | None = None
    sounding: int = 0
    recording: Recording | None = None

    def inputs(self, loaded: LoadedModel, target: Encoded, most: int | None = None) -> Inputs:
        """Source and target as the model runs them; of the source at most so many places (None: all)."""
        own = Inputs.of(target.ids, None, loaded.device)
        if self.mel is not None:
            return Inputs(own.ids, mel=self.mel[..., : None if most is None else 2 * most])
        return Inputs(own.ids, source=Inputs.of(self.encoded.ids[:most], None, loaded.device))


def source(loaded: LoadedModel, parameters: CrossAttention) -> Source:
    """The sound or the text of the request. Raises InputError, TooLong or UnknownRecording."""
    encoder = loaded.config.encoder
    if encoder is None:
        raise InputError(
            f"{parameters.model} has no encoder beside a decoder, so nothing to look across at: "
            "choose a model that has, such as whisper-tiny.en."
        )
    if not isinstance(encoder.front, AudioConfig):
        return Source(_fitting(_text(loaded, parameters), "text", parameters.model, encoder.stack.max_tokens))
    if parameters.text:
        raise InputError(f"{parameters.model} hears a recording and reads no text: leave the text empty.")
    heard = recording(parameters.recording or next(iter(recordings())))
    samples = read_sound(heard.content()).samples  # [N]
    mel = log_mel(samples, encoder.front).to(loaded.device)[None]  # [1, M, 2S]
    sounding = -(-len(samples) // (2 * HOP))
    return Source(frames(mel.shape[2] // 2), mel, sounding, heard)


def target(loaded: LoadedModel, given: Source, parameters: CrossAttention) -> Encoded:
    """The target that was given behind its start, or what the model writes itself."""
    if not parameters.target:
        return written(loaded, given.inputs(loaded, of_ids(loaded, loaded.config.start)))
    if loaded.encoder is None:
        raise InputError(f"{parameters.model} came without a tokenizer: leave the target empty.")
    most = min(MOST_TOKENS, loaded.config.stack.max_tokens)
    encoded = loaded.encoder.encode(parameters.target)
    note(encoded)
    return _fitting(started(loaded, encoded), "target", parameters.model, most)


def _text(loaded: LoadedModel, parameters: CrossAttention) -> Encoded:
    if parameters.recording:
        raise InputError(f"{parameters.model} reads text and hears nothing: leave the recording empty.")
    if loaded.encoder is None or not parameters.text:
        lacks = "came without a tokenizer" if loaded.encoder is None else "reads a text, and none is given"
        raise InputError(f"{parameters.model} {lacks}: give a text to a model that has a tokenizer.")
    encoded = loaded.encoder.encode(parameters.text)
    note(encoded)
    return encoded


def _fitting(encoded: Encoded, name: str, model: str, most: int) -> Encoded:
    most = min(most, MOST_TOKENS)
    if len(encoded.ids) > most:
        raise TooLong(
            f"The {name} has {len(encoded.ids)} tokens, and this lab draws {most} of {model}: shorten it.",
            limit=most,
            tokens=len(encoded.ids),
        )
    return encoded


def seconds(place: float) -> float:
    """When a frame of the encoder begins: each is two steps of the spectrogram."""
    return place * 2 * HOP / SAMPLE_RATE
