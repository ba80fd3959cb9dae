"""What a request wants to run: a text, exactly these ids, or sound, and a decoder's target."""

import base64
import binascii
from dataclasses import dataclass, field

import torch
from torch import Tensor

from app.schemas import TraceRequest
from model.config import AudioConfig
from model.errors import InputError, TooLong
from model.inputs import Inputs
from model.loading import LoadedModel
from model.plan import Plan
from model.recordings import recording
from model.targets import frames, of_ids, started, written
from model.text import Encoded, TextEncoder


@dataclass(frozen=True)
class Reading:
    """The tokens of the stack that is read out, and beside a decoder what its encoder reads.

    `mel` [1, M, 2S] is there for sound, `written` where the target is the model's own.
    """

    encoded: Encoded
    source: Encoded | None = None
    mel: Tensor | None = None
    written: bool = False
    notices: list[str] = field(default_factory=list)

    def inputs(self, loaded: LoadedModel) -> Inputs:
        """What the forward runs on."""
        return _inputs(loaded, self.encoded, self.source, self.mel)

    def same_source(self, other: "Reading") -> bool:
        """Whether the encoder reads the same text, or hears the same sound, in another reading."""
        if self.mel is not None or other.mel is not None:
            return self.mel is not None and other.mel is not None and torch.equal(self.mel, other.mel)
        return self.source is not None and other.source is not None and self.source.ids == other.source.ids


def read(request: TraceRequest, loaded: LoadedModel, plan: Plan) -> Reading:
    """The tokens a request asks to run; a target that is not given is written under `plan`.

    Raises InputError where there are none, or two ways to get them, and TooLong.
    """
    if loaded.config.encoder is None:
        if any(part is not None for part in (request.target, request.target_ids, *_sounds(request))):
            raise InputError(f"{request.model} reads one text: leave out the target and the sound.")
        return Reading(_fitting(_encode(request, loaded), request, loaded.config.stack.max_tokens))
    source, mel, notices = _source(request, loaded)
    if request.target is None and request.target_ids is None:
        start = of_ids(loaded, loaded.config.start)
        encoded = written(loaded, _inputs(loaded, start, source, mel), plan)
        return Reading(encoded, source, mel, written=True, notices=notices)
    encoded = _fitting(_target(request, loaded), request, loaded.config.stack.max_tokens)
    return Reading(encoded, source, mel, notices=notices)


def trial(loaded: LoadedModel) -> Inputs:
    """A few tokens to run a model on for the first time."""
    config = loaded.config
    count = min(8, config.stack.max_tokens, config.embedding.vocabulary)
    ids = torch.arange(count, device=loaded.device)[None]  # [1, T]
    if config.encoder is None:
        return Inputs(ids)
    front = config.encoder.front
    if isinstance(front, AudioConfig):
        return Inputs(ids, mel=torch.zeros(1, front.mel_bins, 2 * front.frames, device=loaded.device))
    return Inputs(ids, source=Inputs(ids))


def _encode(request: TraceRequest, loaded: LoadedModel) -> Encoded:
    if (request.text is None) == (request.ids is None):
        raise InputError("Give either a text or a list of ids to run, one of the two.")
    if request.ids is not None:
        if request.text_pair is not None:
            raise InputError("A second text cannot go with ids: put its ids in the list.")
        return of_ids(loaded, request.ids)
    return _tokenizer(request, loaded).encode(request.text or "", request.text_pair)


def _source(request: TraceRequest, loaded: LoadedModel) -> tuple[Encoded, Tensor | None, list[str]]:
    encoder = loaded.config.encoder
    assert encoder is not None
    if isinstance(encoder.front, AudioConfig):
        return _sound(request, loaded, encoder.front)
    if any(part is not None for part in _sounds(request)):
        raise InputError(f"{request.model} reads text, not sound: leave out the audio.")
    return _fitting(_encode(request, loaded), request, encoder.stack.max_tokens), None, []


def _sounds(request: TraceRequest) -> tuple[str | None, str | None]:
    return request.audio, request.recording


def _sound(
    request: TraceRequest, loaded: LoadedModel, front: AudioConfig
) -> tuple[Encoded, Tensor | None, list[str]]:
    # Imported where sound comes in: the reader of sound files need not be there for text.
    from model.mel import log_mel  # noqa: PLC0415
    from model.wav import read_sound  # noqa: PLC0415

    sound = read_sound(_file(request))
    mel = log_mel(sound.samples, front).to(loaded.device)[None]  # [1, M, 2S]
    return frames(mel.shape[2] // 2), mel, list(sound.notices)


def _file(request: TraceRequest) -> bytes:
    """The sound file's bytes. Raises InputError where not exactly one is given, or a text beside it."""
    one = (request.audio is None) != (request.recording is None)
    if not one or request.text is not None or request.ids is not None:
        raise InputError(
            f"{request.model} reads sound: give a WAV or FLAC file as audio in base64, or the name of a "
            "recording, and no text."
        )
    if request.recording is not None:
        return recording(request.recording).content()
    try:
        return base64.b64decode(request.audio or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError("The audio is not base64: encode the file's bytes.") from error


def _target(request: TraceRequest, loaded: LoadedModel) -> Encoded:
    if request.target is not None and request.target_ids is not None:
        raise InputError("Give either a target text or its ids, one of the two.")
    if request.target_ids is not None:
        return of_ids(loaded, request.target_ids)
    if not request.target:
        raise InputError("The target is empty: leave it out, and the model writes one.")
    return started(loaded, _tokenizer(request, loaded).encode(request.target))


def _inputs(loaded: LoadedModel, encoded: Encoded, source: Encoded | None, mel: Tensor | None) -> Inputs:
    segments = encoded.segments if loaded.config.embedding.segments else None
    own = Inputs.of(encoded.ids, segments, loaded.device)
    if mel is not None:
        return Inputs(own.ids, mel=mel)
    return own if source is None else Inputs(own.ids, source=Inputs.of(source.ids, None, loaded.device))


def _tokenizer(request: TraceRequest, loaded: LoadedModel) -> TextEncoder:
    if loaded.encoder is None:
        raise InputError(
            f"{request.model} came without a tokenizer that can be read here: give ids instead of a text."
        )
    return loaded.encoder


def _fitting(encoded: Encoded, request: TraceRequest, limit: int) -> Encoded:
    """The tokens as they are. Raises TooLong, with the place to cut the text at, where they are too many."""
    if len(encoded.ids) <= limit:
        return encoded
    extra: dict[str, object] = {"limit": limit, "tokens": len(encoded.ids)}
    cut = encoded.cut(limit) if request.text_pair is None else None
    if cut is not None:
        extra["cut"] = cut
    raise TooLong(
        f"The input has {len(encoded.ids)} tokens, but {request.model} has positions for {limit}: "
        "shorten it.",
        **extra,
    )
