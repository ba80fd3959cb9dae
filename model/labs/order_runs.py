"""Both orders of a text on a model that is told of positions in one way or another."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.inputs import Inputs
from model.labs.exact import in_double, small_enough
from model.labs.parameters.order import Sight, Told
from model.labs.reading import run_ids
from model.loading import LoadedModel
from model.plan import Plan
from model.text import Encoded

# What fp64 may leave of a difference that is zero, by the largest output: fp32 leaves up to 1.3e-3 on 30
# layers, and fp64 rounds 2^-29 times as finely.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Setting:
    """What a model is told of positions and which tokens its tokens see."""

    positions: Told
    mask: Sight

    def plan(self, seed: int) -> list[dict[str, object]]:
        """The setting as a plan's JSON."""
        steps: list[dict[str, object]] = []
        if self.positions != "on":
            mode = "off" if self.positions == "off" else "shuffle"
            steps.append({"kind": "set_position", "mode": mode, "seed": seed if mode == "shuffle" else 0})
        if self.mask != "own":
            steps.append({"kind": "set_mask", "rule": {"name": self.mask}})
        return steps

    @property
    def name(self) -> str:
        """The setting in words."""
        return f"positions {self.positions}, {self.mask} mask"


BLIND = Setting("off", "bidirectional")
FIXED = (
    Setting("on", "bidirectional"),
    BLIND,
    Setting("off", "causal"),
    Setting("shuffled", "bidirectional"),
)


@dataclass(frozen=True)
class Difference:
    """How far both orders end apart, token by token of the first, and how alike their means are."""

    setting: Setting
    by_token: Tensor
    largest_output: float
    cosine: float
    exact: bool

    @property
    def largest(self) -> float:
        """The largest difference of any number of any token's output."""
        return self.by_token.max().item()

    @property
    def name(self) -> str:
        """The setting in words, and that it ran in fp64 where it did."""
        return f"{self.setting.name}{', in fp64' if self.exact else ''}"

    @property
    def rounding(self) -> float:
        """What rounding may leave in fp64."""
        return ROUNDING * max(1.0, self.largest_output)


def difference(
    loaded: LoadedModel, texts: tuple[Encoded, Encoded], where: Tensor, setting: Setting, seed: int
) -> Difference:
    """Outputs of the first text's tokens against those at `where` [T] in the second."""
    # Where nothing but rounding is to be left, fp32 would leave more the deeper a model is.
    exact = setting == BLIND and small_enough(loaded.transformer)
    if exact:
        a, b = _exact_outputs(loaded, texts, setting.plan(seed))  # [T, D] both
    else:
        a, b = (run_ids(loaded, text, setting.plan(seed)).final.double().cpu() for text in texts)
    by_token = (a - b[where]).abs().amax(-1)  # [T]
    cosine = torch.nn.functional.cosine_similarity(a.mean(0), b.mean(0), dim=0).item()
    return Difference(setting, by_token, a.abs().max().item(), cosine, exact)


@torch.inference_mode()
def _exact_outputs(
    loaded: LoadedModel, texts: tuple[Encoded, Encoded], plan: list[dict[str, object]]
) -> tuple[Tensor, Tensor]:
    """Both outputs [T, D] of a run in fp64: as a batch, since both have as many tokens."""
    one, other = texts
    ids = torch.tensor([one.ids, other.ids], device=loaded.device)  # [2, T]
    segments = torch.tensor([one.segments, other.segments], device=loaded.device)  # [2, T]
    parsed = Plan.parse(plan).canonical(loaded.config)
    final = in_double(loaded.transformer)(Inputs(ids, segments), parsed).cpu()  # [2, T, D]
    return final[0], final[1]
