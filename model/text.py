"""Text to the tokens that run, and back: what each token stands for, and where that stood in the text."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding, Tokenizer

from model.errors import InputError
from model.text_notices import Piece, notices_of
from model.token_text import sentence_piece, spelling_of, token_texts
from model.tokenizer_spec import Spec, marks_spaces, separates_pair, whole
from model.words import WHITE_SPACE, Span, Words


@dataclass(frozen=True)
class Token:
    """One token that runs.

    `text` is what the id stands for (see `token_texts`), so an uncased model shows "the" for "The";
    special tokens show by name. `span` is the half-open range of code points of the submitted text (of
    its `segment`) that the token came from, without white space at its ends unless it holds nothing else.
    Spans overlap or repeat where tokens share a character; a span is None where no submitted text stands
    behind the token. `words` are indices of the UAX #29 segments that the span overlaps, those of a
    second text numbered on after those of the first; special tokens belong to none. `segment` is the text
    the token came from, 0 or 1; for a special token that the template adds, the token type that the
    template gives it.
    """

    id: int
    text: str
    span: Span | None
    words: tuple[int, ...]
    special: bool
    segment: int


@dataclass(frozen=True)
class Encoded:
    """A text, or a pair, as a model takes it: `ids` and token types `segments`, one for each of `tokens`.

    `notices` are sentences about what the tokenizer did to the text that the tokens alone do not show.
    """

    ids: list[int]
    segments: list[int]
    tokens: list[Token]
    notices: list[str]

    def cut(self, limit: int) -> int | None:
        """Where the one text has to end, in code points, for `limit` tokens; None where no place is known."""
        kept = [token for token in self.tokens if token.span is not None and not token.special]
        room = limit - (len(self.tokens) - len(kept))
        last = kept[room - 1].span if 0 < room < len(kept) else None
        return None if last is None else last[1]


class TextEncoder:
    """The tokenizer of one model. It never truncates or pads, whatever its file says."""

    def __init__(self, spec: Spec, mask_token: str | None = None) -> None:
        """`spec` is the content of a tokenizer.json; `tokenizers` raises Exception for a malformed one."""
        self._tokenizer = Tokenizer.from_str(json.dumps(whole(spec)))
        self._spell = spelling_of(spec)
        self._marks_spaces = marks_spaces(spec)
        self._takes_pair = separates_pair(spec)
        self._unknown = self._unknown_id(spec["model"])
        added = self._tokenizer.get_added_tokens_decoder()
        self._added = {token_id: token.content for token_id, token in added.items()}
        self._special = {token_id for token_id, token in added.items() if token.special} - {self._unknown}
        self.mask_id = None if mask_token is None else self._tokenizer.token_to_id(mask_token)
        self.vocab_size = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    def encode(self, text: str, pair: str | None = None) -> Encoded:
        """The tokens of a text, or of a pair of texts, with the special tokens of the model's template.

        Raises InputError for a text with nothing to run or a lone surrogate, and for a pair where the model's
        template takes one text.
        """
        texts = [text] if pair is None else [text, pair]
        if pair is not None and not self._takes_pair:
            raise InputError("This model reads one text, not a pair: leave out the second text.")
        for index in range(len(texts)):
            _refuse_unreadable(texts, index)
        encoding = self._tokenizer.encode(text, pair)
        _refuse_dropped(texts, set(encoding.sequence_ids))
        notices = self._notices(encoding, texts)
        return Encoded(encoding.ids, encoding.type_ids, self._tokens(encoding, texts), notices)

    def describe(self, ids: Sequence[int]) -> list[Token]:
        """Tokens for ids that came without text: no spans, no words. Raises InputError for an unknown id."""
        self._refuse_unknown_ids(ids)
        texts = token_texts([self._bytes(token_id) for token_id in ids])
        return [
            Token(token_id, text, span=None, words=(), special=token_id in self._special, segment=0)
            for token_id, text in zip(ids, texts, strict=True)
        ]

    def label(self, token_id: int) -> str:
        """What one id stands for on its own, for lists of predictions; "‹id 7›" where that is nothing."""
        return token_texts([self._bytes(token_id)])[0] or f"‹id {token_id}›"

    def decode(self, ids: Sequence[int]) -> str:
        """The text that `ids` stand for, special tokens by name. Raises InputError for an unknown id."""
        self._refuse_unknown_ids(ids)
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def _tokens(self, encoding: Encoding, texts: Sequence[str]) -> list[Token]:
        shown = token_texts([self._bytes(token_id) for token_id in encoding.ids])
        words = [Words(texts[0])]
        words += [Words(text, first=len(words[0])) for text in texts[1:]]
        parts = zip(
            encoding.ids, shown, encoding.offsets, encoding.sequence_ids, encoding.type_ids, strict=True
        )
        tokens = []
        for token_id, text, offsets, source, token_type in parts:
            if source is None:
                tokens.append(Token(token_id, text, span=None, words=(), special=True, segment=token_type))
                continue
            span, special = _trimmed(offsets, texts[source], text), token_id in self._special
            overlapped = () if special or span is None else words[source].overlapping(span)
            tokens.append(Token(token_id, text, span, overlapped, special, segment=source))
        return tokens

    def _notices(self, encoding: Encoding, texts: Sequence[str]) -> list[str]:
        named = {token_id: self.label(token_id) for token_id in self._special}
        unknown = None if self._unknown is None else self.label(self._unknown)
        pieces: list[list[Piece]] = [[] for _ in texts]
        for token_id, span, source in zip(encoding.ids, encoding.offsets, encoding.sequence_ids, strict=True):
            if source is not None:
                pieces[source].append((span, unknown if token_id == self._unknown else named.get(token_id)))
        normalizer = self._tokenizer.normalizer
        return notices_of(texts, pieces, None if normalizer is None else normalizer.normalize_str, unknown)

    def _bytes(self, token_id: int) -> bytes:
        piece = self._tokenizer.id_to_token(token_id) if token_id >= 0 else None
        if piece is None:
            return b""
        if token_id not in self._added:
            return self._spell(piece)
        # An added token is matched in the text as it is written: no spelling applies but a space's mark.
        return (
            sentence_piece(piece) if self._marks_spaces and token_id not in self._special else piece.encode()
        )

    def _unknown_id(self, model: Spec) -> int | None:
        if model.get("unk_id") is not None:
            return int(model["unk_id"])
        name = model.get("unk_token")
        return None if name is None else self._tokenizer.token_to_id(name)

    def _refuse_unknown_ids(self, ids: Sequence[int]) -> None:
        for token_id in ids:
            if not 0 <= token_id < self.vocab_size:
                raise InputError(
                    f"Id {token_id} is not in the vocabulary of this model: use ids from 0 to"
                    f" {self.vocab_size - 1}.",
                    id=token_id,
                )


def _name(texts: Sequence[str], index: int) -> str:
    return "the text" if len(texts) == 1 else ("the first text", "the second text")[index]


def _refuse_unreadable(texts: Sequence[str], index: int) -> None:
    text, name = texts[index], _name(texts, index).capitalize()
    if not text:
        raise InputError(f"{name} is empty: type or paste something.")
    position = next((place for place, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
    if position is not None:
        code = f"U+{ord(text[position]):04X}"
        raise InputError(
            f"{name} holds half a character (lone surrogate {code}) at position {position}, counted from 0:"
            " delete it.",
            position=position,
        )


def _refuse_dropped(texts: Sequence[str], sources: set[int | None]) -> None:
    for index, text in enumerate(texts):
        if index not in sources:
            raise InputError(
                f"This model's tokenizer leaves nothing of {_name(texts, index)} ({text[:20]!a}):"
                " type or paste something else."
            )


def _trimmed(offsets: Span, text: str, shown: str) -> Span | None:
    """The span without white space at its ends; None for a space that the tokenizer put before the text."""
    start, end = offsets
    source = text[start:end]
    visible = source.strip(WHITE_SPACE)
    if not source or (visible and not shown.strip(WHITE_SPACE)):
        return None
    if not visible:
        return start, end
    start += len(source) - len(source.lstrip(WHITE_SPACE))
    return start, start + len(visible)
