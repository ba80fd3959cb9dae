"""One word in one text on a real model: its vector after every layer, and its heads' weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from model.labs.parameters.context import Context
from model.labs.reading import Ran, run_ids
from model.labs.word_links import Word, all_weights, find_word, read_short, word_weights, words_of
from model.loading import LoadedModel

MAX_TOKENS = 128


@dataclass(frozen=True)
class Use:
    """The word in one text: its place, and vectors of all words [L + 1, W, D] after 0 to L layers."""

    text: str
    ran: Ran
    words: Sequence[Word]
    place: int
    vectors: Tensor

    @property
    def vector(self) -> Tensor:
        """The word's own vectors, [L + 1, D]: means over its pieces."""
        return self.vectors[:, self.place]

    @property
    def ids(self) -> list[int]:
        """The word's tokens."""
        return [self.ran.encoded.ids[token] for token in self.words[self.place].tokens]

    @property
    def ordinary(self) -> list[int]:
        """Places of all words that are not special."""
        return [place for place, word in enumerate(self.words) if not word.special]

    @cached_property
    def weights(self) -> Tensor:
        """All heads' weights between words, [L · H, W, W]."""
        return word_weights(all_weights(list(self.ran.trace.sites.values())), self.words)


def use(
    loaded: LoadedModel, parameters: Context, text: str, where: str, plan: Sequence[dict[str, object]] = ()
) -> Use:
    """The word in one text. Raises InputError where the text lacks it, and what `read_short` raises."""
    encoded = read_short(loaded, parameters.model, text, MAX_TOKENS)
    words = words_of(encoded, text)
    place = find_word(words, parameters.word, where=where)
    ran = Ran(loaded, encoded, run_ids(loaded, encoded, plan, ("resid",)))
    stack = loaded.config.stack
    stream = (
        torch.stack([ran.trace.resid[stack.name, layer] for layer in range(stack.layers + 1)]).float().cpu()
    )  # [L + 1, T, D]
    vectors = torch.stack(
        [stream[:, list(word.tokens)].mean(dim=1) for word in words], dim=1
    )  # [L + 1, W, D]
    return Use(text, ran, words, place, vectors)


def similarity(a: Use, b: Use) -> Tensor:
    """Cosine of the word's vectors in two texts at each layer, [L + 1]."""
    return F.cosine_similarity(a.vector, b.vector, dim=1)
