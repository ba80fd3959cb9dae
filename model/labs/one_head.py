"""One head of a model that a lab looks at."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.reading import Ran
from model.labs.words import one_of
from model.loading import LoadedModel
from model.scores import Stage
from model.trace import SiteTrace

# What fp32 keeps of a sum of some hundred terms, and what 8 bits of mantissa do.
TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
COARSE = 0.05
BETWEEN: tuple[Stage, Stage] = ("scaled", "masked")


@dataclass(frozen=True)
class Where:
    """A layer and a head of a model's one stack."""

    layer: int
    head: int

    def check(self, loaded: LoadedModel, model_id: str) -> None:
        """Raises InputError for a layer or head that the model does not have."""
        stack = loaded.config.stack
        counts = {"layer": (self.layer, stack.layers), "head": (self.head, stack.attention.heads)}
        for name, (index, count) in counts.items():
            if index >= count:
                raise InputError(f"{model_id} has no {name} {index}: {one_of(count)}.")

    def of(self, ran: Ran) -> SiteTrace:
        """What the layer's attention left behind."""
        return ran.trace.sites[ran.loaded.config.stack.self_sites[self.layer]]

    @property
    def heads(self) -> range:
        """The head, as a range."""
        return range(self.head, self.head + 1)


def by_hand(ran: Ran, where: Where) -> tuple[Tensor, Tensor]:
    """A head's scores after the mask, and weights, from the run's q and k: [T, S] each in fp64.

    A check holds what is drawn against it. Position bias and mask come from the run's rule: what they add.
    """
    site, rows = where.of(ran), range(len(ran.encoded.ids))
    q, k = (
        site.q[where.head].cpu().double(),
        site.k[site.key_head(where.head)].cpu().double(),
    )  # [T, K], [S, K]
    scaled, masked = (site.attention(where.heads, rows, stage)[0].cpu() for stage in BETWEEN)  # [T, S] each
    own = torch.einsum("tk,sk->ts", q, k) * site.rule.scales[where.head]  # [T, S]
    scores = own + (masked - scaled).double()  # [T, S]
    exponents = (scores - scores.amax(dim=-1, keepdim=True)).exp()  # [T, S]
    return scores, exponents / exponents.sum(dim=-1, keepdim=True)


def tolerance(loaded: LoadedModel) -> float:
    """How far two ways to compute one output of the model may be apart, relative to its size."""
    return TOLERANCE.get(loaded.dtype, COARSE)


def spoken(label: str) -> str:
    """A token as a sentence can hold it: without the spaces around it, a line break as a sign."""
    return label.strip() or label.replace("\n", "⏎").replace(" ", "␣")


def numbered(labels: list[str]) -> list[str]:
    """Labels that are unique, as an axis needs them: "2 animal"."""
    return [f"{place} {spoken(label)}" for place, label in enumerate(labels)]


def relative(difference: Tensor, of: Tensor) -> Tensor:
    """|difference| / |of| of each row [..., D]: [...]."""
    sizes: Tensor = of.double().norm(dim=-1).clamp(min=1e-12)  # [...]
    far: Tensor = difference.double().norm(dim=-1)  # [...]
    return far / sizes  # [...]
