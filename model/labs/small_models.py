"""Small models that differ in their positions alone, and the invented language that they learn."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.config import (
    AlibiPosition,
    AttentionConfig,
    EmbeddingConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerNorm,
    Learned,
    NoPosition,
    Position,
    RelativeBuckets,
    Rope,
    Sinusoidal,
    StackConfig,
    TransformerConfig,
)
from model.inputs import Inputs
from model.rules import Causal
from model.transformer import Transformer

VOCABULARY, RATE = 8, 4e-3
# The first two tokens of a text follow no rule.
SEEDS = 2


@dataclass(frozen=True)
class Source:
    """Texts in which each token follows from the two before it, but for a share of `noise`."""

    table: Tensor
    noise: float

    @classmethod
    def of(cls, seed: int, noise: float) -> "Source":
        """A rule drawn from the seed."""
        generator = torch.Generator().manual_seed(seed)
        return cls(torch.randint(VOCABULARY, (VOCABULARY, VOCABULARY), generator=generator), noise)

    def draw(self, count: int, length: int, generator: torch.Generator) -> Tensor:
        """Ids [count, length]."""
        ids = torch.randint(VOCABULARY, (count, length), generator=generator)
        ruled = torch.rand(count, length, generator=generator) >= self.noise
        for t in range(SEEDS, length):
            ids[:, t] = torch.where(ruled[:, t], self.table[ids[:, t - 1], ids[:, t - 2]], ids[:, t])
        return ids

    def least(self, ids: Tensor) -> Tensor:
        """Nats that who knows the rule pays for each token of ids [N, T + 1], all but the first: [N, T]."""
        right = self.table[ids[:, 1:-1], ids[:, :-2]] == ids[:, 2:]  # [N, T - 1]
        stray = torch.tensor(self.noise / VOCABULARY, dtype=torch.float64)
        chance = torch.where(right, 1 - self.noise + stray, stray)  # [N, T - 1]
        first = torch.full((len(ids), 1), math.log(VOCABULARY), dtype=torch.float64)
        return torch.cat((first, -chance.log()), dim=1)  # [N, T]

    @property
    def entropy(self) -> float:
        """Nats a token that nobody can do better than: the entropy of a token given the two before."""
        stray = self.noise / VOCABULARY
        chances = [1 - self.noise + stray, *[stray] * (VOCABULARY - 1)]
        return -sum(p * math.log(p) for p in chances if p > 0)


def schemes(length: int) -> dict[str, Position]:
    """Every kind of position, for texts of up to `length` tokens."""
    return {
        "sinusoidal": Sinusoidal(length, interleaved=True),
        "ALiBi": AlibiPosition(length),
        "learned table": Learned(length, offset=0),
        "RoPE": Rope(10_000.0, 16, length),
        "T5 buckets": RelativeBuckets(16, 32, length),
        "none": NoPosition(length),
    }


def build(position: Position, seed: int) -> Transformer:
    """Two causal pre-norm blocks of width 64 with four heads, weights drawn from the seed."""
    attention = AttentionConfig(4, 4, 16, scale=16**-0.5, qkv_bias=False, out_bias=False)
    feed_forward = FeedForwardConfig(128, "gelu", gated=False, bias=True)
    stack = StackConfig(
        "decoder", 2, 64, attention, feed_forward, LayerNorm(1e-5), "pre", position=position, mask=Causal(),
        final_norm=True,
    )  # fmt: skip
    head = HeadConfig(tied=False, bias=False, transform=None)
    whole = TransformerConfig(EmbeddingConfig(VOCABULARY, None, None), stack, "logits", head)
    # Without memory at first, so that no weight is drawn from the process's own random numbers.
    with torch.device("meta"):
        model = Transformer(whole)
    model.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            _begin(name, weight, generator)
    return model


def _begin(name: str, weight: Tensor, generator: torch.Generator) -> None:
    """Gains 1, biases 0, matrices by their width."""
    if weight.dim() == 1:
        weight.fill_(0.0 if name.endswith("bias") else 1.0)
    elif name.startswith("stack.bias"):
        weight.zero_()
    else:
        weight.normal_(
            0, 0.5 if name.startswith("embeddings") else weight.shape[1] ** -0.5, generator=generator
        )


def train(model: Transformer, lessons: Sequence[Tensor], report: Callable[[float], None]) -> None:
    """Trains on batches of ids [N, T + 1], one a step; `report` hears the share that is done."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, fused=True)
    for step, ids in enumerate(lessons):
        if step % 10 == 0:
            report(step / len(lessons))
        # Warm-up, then down to nothing: short trainings end well only so.
        share = (step + 1) / len(lessons)
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, share / 0.2, (1 - share) / 0.8 + 0.01)
        loss = _loss(model, ids)[:, SEEDS - 1 :].mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _loss(model: Transformer, ids: Tensor) -> Tensor:
    """Nats at each position, for ids [N, T + 1]: [N, T]."""
    logits = model.logits(model(Inputs(ids[:, :-1])))  # [N, T, V]
    return F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")  # [N, T]


@torch.no_grad()
def losses(model: Transformer, ids: Tensor) -> Tensor:
    """Nats of each token of texts ids [N, T + 1], all but the first: [N, T] in fp64."""
    return _loss(model, ids).double()  # [N, T]
