"""An architecture's card: what it is made of, and what it costs at a length, all from its configuration."""

from dataclasses import dataclass
from functools import cached_property

import torch

from model.checkpoints.checkpoint import Checkpoint
from model.config import AudioConfig, TransformerConfig
from model.labs import costs
from model.labs.costs import Lengths
from model.labs.counting import EMBEDDINGS, Weight, block_matrices, by_part, unembedding, weights
from model.labs.described import describe
from model.labs.result import Axis, Chart, Check, Line

# Lengths of the curves: powers of two up to the longest that a lab may be asked for.
LONGEST = 20


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

    def facts(self) -> dict[str, object]:
        """The card's numbers, for sentences and tables."""
        config, lengths = self.config, Lengths.of(self.config, self.tokens)
        found = self.weights
        return {
            "title": self.title,
            "stacks": [describe(stack) for stack in config.stacks],
            "parts": [
                {"part": self._called(part), "parameters": number, "share": f"{number / self.parameters:.2%}"}
                for part, number in self.parts.items()
            ],
            "parameters": self.parameters,
            "without_embeddings": self.without_embeddings,
            "most_tokens": config.stack.max_tokens,
            "tokens": lengths.tokens,
            "source": lengths.source,
            "token_gflop": costs.token_operations(config, found, lengths) / 1e9,
            "source_gflop": costs.source_operations(config, found, lengths) / 1e9 if config.encoder else None,
            "weights_mb": self.parameters * self.bytes / 1e6,
            "cache_mb": costs.cache_numbers(config, lengths) * self.bytes / 1e6,
            "cache_kb_a_token": self._cache_a_token() / 1e3,
            "attention_mb": costs.attention_numbers(config, lengths) * self.bytes / 1e6,
        }

    def _called(self, part: str) -> str:
        """A part as the table names it: a tied head is no part of its own."""
        tied = self.config.head is not None and self.config.head.tied
        return f"{part}, also the head" if tied and part == "token embedding" else part

    def charts(self) -> list[Chart]:
        """Parameters by part, and what a length costs."""
        return [self._parts(), self._memory(), self._operations()]

    def matrices(self) -> Check:
        """The blocks' matrices, by formula and as counted."""
        blocks = [one for one in self.weights if one.matrix and ".blocks." in one.name]
        measured = sum(one.parameters for one in blocks)
        expected = sum(block_matrices(stack) for stack in self.config.stacks)
        return Check(f"matrices of the blocks of {self.title}", expected, measured, about="parts")

    def notes(self) -> list[str]:
        """What a reader must know."""
        most, found = self.config.stack.max_tokens, list(self.checkpoint.notices)
        if self.tokens > most:
            found.append(
                f"{self.title} was made for {most:,} tokens: "
                f"what stands here for {self.tokens:,} is arithmetic only."
            )
        if self.config.stack.name == "encoder":
            found.append(f"{self.title} reads all tokens at once: it keeps no keys and values.")
        encoder = self.config.encoder
        if encoder is not None and isinstance(encoder.front, AudioConfig):
            found.append(f"Sound always fills the encoder's {encoder.front.frames:,} positions.")
        return found

    def _cache_a_token(self) -> float:
        """Bytes that the next token adds to the cache, before any window is full."""
        one, two = (Lengths(n, 0) for n in (1, 2))
        return self.bytes * (costs.cache_numbers(self.config, two) - costs.cache_numbers(self.config, one))

    def _parts(self) -> Chart:
        line = Line(self.title, list(self.parts), [float(number) for number in self.parts.values()])
        title = f"Parameters of {self.title} by part"
        return Chart("parts", title, Axis("part"), Axis("parameters"), [line], kind="bars")

    def _memory(self) -> Chart:
        at = self._lengths()
        cache = [costs.cache_numbers(self.config, one) * self.bytes / 1e6 or None for one in at]
        attention = [costs.attention_numbers(self.config, one) * self.bytes / 1e6 for one in at]
        weight = [self.parameters * self.bytes / 1e6] * len(at)
        tokens = [float(one.tokens) for one in at]
        lines = [
            Line("attention of all heads, written out", tokens, attention),
            Line("keys and values kept", tokens, cache),
            Line("weights", tokens, weight),
        ]
        title = f"Memory of {self.title} by length, in {self.precision}"
        return Chart("memory", title, Axis("tokens", log=True), Axis("MB", log=True), lines)

    def _operations(self) -> Chart:
        at = self._lengths()
        tokens = [float(one.tokens) for one in at]
        of_token = [costs.token_operations(self.config, self.weights, one) / 1e9 for one in at]
        lines = [Line("the last token", tokens, of_token)]
        if self.config.encoder is not None:
            of_source = [costs.source_operations(self.config, self.weights, one) / 1e9 for one in at]
            lines.append(Line("one position of the source", tokens, of_source))
        title = f"Operations of {self.title} by length"
        return Chart("operations", title, Axis("tokens", log=True), Axis("GFLOP a token", log=True), lines)

    def _lengths(self) -> list[Lengths]:
        return [
            Lengths.of(self.config, tokens)
            for tokens in sorted({2**n for n in range(LONGEST + 1)} | {self.tokens})
        ]
