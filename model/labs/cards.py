"""An architecture's card: what it is made of, and what it costs at a length, all from its configuration."""

from dataclasses import dataclass
from functools import cached_property

import torch

from model.checkpoints.checkpoint import Checkpoint
from model.config import AudioConfig, TransformerConfig
from model.labs import costs
from model.labs.costs import Lengths
from model.labs.counting import EMBEDDINGS, Weight, by_part, unembedding, weights
from model.labs.described import describe
from model.labs.words import scaled


@dataclass(frozen=True)
class Costs:
    """Operations of the last token and of a position of the source; bytes of cache, attention, weights."""

    token: int
    source: int
    cache: int
    attention: int
    weights: int


@dataclass(frozen=True)
class Card:
    """A configuration, looked at for a length and a number type; `beside` are parts that are not run here."""

    title: str
    checkpoint: Checkpoint
    tokens: int
    precision: str
    beside: tuple[tuple[str, int], ...] = ()

    @property
    def config(self) -> TransformerConfig:
        """The model's configuration."""
        return self.checkpoint.config

    @cached_property
    def weights(self) -> list[Weight]:
        """Every tensor it stores."""
        return weights(self.checkpoint)

    @cached_property
    def parts(self) -> dict[str, int]:
        """Parameters part by part, those beside the model last."""
        return {**by_part(self.weights), **dict(self.beside)}

    @property
    def parameters(self) -> int:
        """All of them."""
        return sum(self.parts.values())

    @property
    def without_embeddings(self) -> int:
        """Parameters as Kaplan et al. 2020 count them: no vocabulary, position or segment matrices."""
        embeddings = sum(self.parts.get(part, 0) for part in EMBEDDINGS)
        return self.parameters - embeddings - unembedding(self.weights)

    @property
    def bytes(self) -> int:
        """Bytes of one number."""
        kind: torch.dtype = getattr(torch, self.precision)
        return kind.itemsize

    @cached_property
    def lengths(self) -> Lengths:
        """The length that is asked for."""
        return Lengths.of(self.config, self.tokens)

    @cached_property
    def costs(self) -> Costs:
        """What that length costs."""
        return self.costs_at(self.lengths)

    def costs_at(self, lengths: Lengths) -> Costs:
        """What a length costs: facts and curves are both of these numbers."""
        config, found = self.config, self.weights
        return Costs(
            costs.token_operations(config, found, lengths),
            costs.source_operations(config, found, lengths),
            self.bytes * costs.cache_numbers(config, lengths),
            self.bytes * costs.attention_numbers(config, lengths),
            self.bytes * self.parameters,
        )

    @property
    def further(self) -> int:
        """Bytes that the next token adds to the cache, the source staying: 0 behind a full window."""
        after = Lengths(self.lengths.tokens + 1, self.lengths.source)
        return self.costs_at(after).cache - self.costs.cache

    def facts(self) -> dict[str, object]:
        """The card's numbers, for sentences and tables."""
        of, tied = self.costs, self.config.head is not None and self.config.head.tied
        return {
            "title": self.title,
            "stacks": [describe(stack) for stack in self.config.stacks],
            "parts": [
                {
                    "part": _called(part, tied=tied),
                    "parameters": number,
                    "share": f"{number / self.parameters:.2%}",
                }
                for part, number in self.parts.items()
            ],
            "parameters": self.parameters,
            "without_embeddings": self.without_embeddings,
            "most_tokens": self.config.stack.max_tokens,
            "tokens": self.lengths.tokens,
            "source": self.lengths.source,
            "token_operations": of.token,
            "source_operations": of.source if self.config.encoder else None,
            "weights_bytes": of.weights,
            "cache_bytes": of.cache,
            "cache_bytes_a_token": self.further,
            "attention_bytes": of.attention,
            "token_work": scaled(of.token, "FLOP"),
            "source_work": scaled(of.source, "FLOP") if self.config.encoder else None,
            "weights_memory": scaled(of.weights, "B"),
            "cache_memory": self._kept(),
            "attention_memory": scaled(of.attention, "B"),
        }

    def _kept(self) -> str:
        """The cache in words."""
        if self.config.stack.name == "encoder":
            return "none, as it reads all tokens at once"
        if self.further == 0:
            return f"{scaled(self.costs.cache, 'B')} (nothing for a further token, as its window is full)"
        return f"{scaled(self.costs.cache, 'B')} ({scaled(self.further, 'B')} for each further token)"

    def notes(self) -> list[str]:
        """What a reader must know."""
        most, found = self.config.stack.max_tokens, list(self.checkpoint.notices)
        title = self.title[0].upper() + self.title[1:]
        if self.tokens > most:
            found.append(
                f"{title} was made for {most:,} tokens: "
                f"what stands here for {self.tokens:,} is arithmetic only."
            )
        if self.config.stack.name == "encoder":
            found.append(f"{title} reads all tokens at once: it keeps no keys and values.")
        encoder = self.config.encoder
        if encoder is not None and isinstance(encoder.front, AudioConfig):
            found.append(f"Sound always fills the encoder's {encoder.front.frames:,} positions.")
        return found


def _called(part: str, *, tied: bool) -> str:
    """A part as the table names it: a tied output matrix is no part of its own."""
    return f"{part}, also the output matrix" if tied and part == "token embedding" else part
