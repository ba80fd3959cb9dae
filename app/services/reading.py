"""What a request wants to run: a text, exactly these ids, or sound, and a decoder's target."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import Tensor

from app.schemas import TraceRequest
from model.config import AudioConfig
from model.errors import InputError, TooLong
from model.generate import greedy
from model.inputs import Inputs
from model.loading import LoadedModel
from model.plan import Plan
from model.text import Encoded, TextEncoder, Token

# Where nobody gives a target, the decoder writes at most this much of its own.
WRITTEN_TOKENS = 64


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
        if request.target is not None or request.target_ids is not None or request.audio is not None:
            raise InputError(f"{request.model} reads one text: leave out the target and the sound.")
        return Reading(_fitting(_encode(request, loaded), request, loaded.config.stack.max_tokens))
    source, mel, notices = _source(request, loaded)
    if request.target is None and request.target_ids is None:
        encoded = _write(loaded, source, mel, plan)
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
        return _from_ids(loaded, request.ids)
    return _tokenizer(request, loaded).encode(request.text or "", request.text_pair)


def _source(request: TraceRequest, loaded: LoadedModel) -> tuple[Encoded, Tensor | None, list[str]]:
    encoder = loaded.config.encoder
    assert encoder is not None
    if isinstance(encoder.front, AudioConfig):
        return _sound(request, loaded, encoder.front)
    if request.audio is not None:
        raise InputError(f"{request.model} reads text, not sound: leave out the audio.")
    return _fitting(_encode(request, loaded), request, encoder.stack.max_tokens), None, []


def _sound(
    request: TraceRequest, loaded: LoadedModel, front: AudioConfig
) -> tuple[Encoded, Tensor | None, list[str]]:
    # Imported where sound comes in: the reader of sound files need not be there for text.
    from model.mel import log_mel  # noqa: PLC0415
    from model.wav import read_sound  # noqa: PLC0415

    if request.audio is None or request.text is not None or request.ids is not None:
        raise InputError(
            f"{request.model} reads sound: give a WAV or FLAC file as audio in base64, and no text."
        )
    try:
        data = base64.b64decode(request.audio, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError("The audio is not base64: encode the file's bytes.") from error
    sound = read_sound(data)
    mel = log_mel(sound.samples, front).to(loaded.device)[None]  # [1, M, 2S]
    return _frames(mel.shape[2] // 2), mel, list(sound.notices)


def _frames(count: int) -> Encoded:
    """One token for each position the encoder makes of the sound, 20 ms apart."""
    tokens = [Token(-1, f"{0.02 * i:.2f} s", None, (), special=False, segment=0) for i in range(count)]
    return Encoded([-1] * count, [0] * count, tokens, [])


def _target(request: TraceRequest, loaded: LoadedModel) -> Encoded:
    if request.target is not None and request.target_ids is not None:
        raise InputError("Give either a target text or its ids, one of the two.")
    if request.target_ids is not None:
        return _from_ids(loaded, request.target_ids)
    if not request.target:
        raise InputError("The target is empty: leave it out, and the model writes one.")
    return _started(loaded, _tokenizer(request, loaded).encode(request.target))


def _started(loaded: LoadedModel, encoded: Encoded) -> Encoded:
    """The target as the decoder reads it: behind its start, without the mark that ends it."""
    ids, tokens = list(encoded.ids), list(encoded.tokens)
    while tokens and tokens[-1].special and ids[-1] in loaded.config.stop:
        ids, tokens = ids[:-1], tokens[:-1]
    start = list(loaded.config.start)
    if ids[: len(start)] != start:
        tokens = [*_describe(start, loaded.encoder), *tokens]
        ids = start + ids
    return Encoded(ids, [0] * len(ids), tokens, encoded.notices)


def _write(loaded: LoadedModel, source: Encoded, mel: Tensor | None, plan: Plan) -> Encoded:
    start = _from_ids(loaded, list(loaded.config.start))
    inputs = _inputs(loaded, start, source, mel)
    limit = min(WRITTEN_TOKENS, loaded.config.stack.max_tokens - len(start.ids))
    written = list(greedy(loaded.transformer, inputs, loaded.config.stop, limit, plan))
    whole = _from_ids(loaded, [*start.ids, *written])
    cut = (
        [f"The target is what the model writes itself, cut after {limit} tokens."]
        if len(written) == limit
        else []
    )
    return Encoded(whole.ids, whole.segments, whole.tokens, cut)


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


def _from_ids(loaded: LoadedModel, ids: list[int]) -> Encoded:
    vocabulary = loaded.config.embedding.vocabulary
    if not ids:
        raise InputError("The list of ids is empty: give at least one.")
    for position, id_ in enumerate(ids):
        if id_ not in range(vocabulary):
            raise InputError(
                f"Id {id_} at position {position} is not in the vocabulary of 0 to {vocabulary - 1}.", id=id_
            )
    return Encoded(ids, [0] * len(ids), list(_describe(ids, loaded.encoder)), [])


def _describe(ids: list[int], encoder: TextEncoder | None) -> Iterator[Token]:
    """What ids stand for; a vocabulary may have rows that its tokenizer has no pieces for."""
    pieces = 0 if encoder is None else encoder.vocab_size
    for known, group in groupby(ids, key=lambda id_: id_ < pieces):
        if encoder is not None and known:
            yield from encoder.describe(list(group))
        else:
            for id_ in group:
                text = str(id_) if encoder is None else encoder.label(id_)
                yield Token(id_, text, None, (), special=False, segment=0)


def _fitting(encoded: Encoded, request: TraceRequest, limit: int) -> Encoded:
    """The tokens as they are. Raises TooLong, with the place to cut the text at, where they are too many."""
    if len(encoded.ids) <= limit:
        return encoded
    extra: dict[str, object] = {"limit": limit, "tokens": len(encoded.ids)}
    kept = [token for token in encoded.tokens if token.span is not None and not token.special]
    room = limit - (len(encoded.tokens) - len(kept))
    cut = kept[room - 1].span if request.text_pair is None and 0 < room < len(kept) else None
    if cut is not None:
        extra["cut"] = cut[1]
    raise TooLong(
        f"The input has {len(encoded.ids)} tokens, but {request.model} has positions for {limit}: "
        "shorten it.",
        **extra,
    )
