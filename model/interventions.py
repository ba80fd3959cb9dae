"""Interventions: values that say what to change in a run.

The model is never touched: a `Plan` of them is passed to the run (see `plan.py`).
"""

import fnmatch
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt

from model.config import Sites, layer_of
from model.errors import PlanError
from model.rules import StructuralRule, mask_in_words

ScaleRule = Literal["own", "none", "inv_sqrt", "inv"]
PositionMode = Literal["own", "off", "shuffle", "reverse", "shift"]
Sublayer = Literal["attention", "cross", "ffn"]
Index = Annotated[StrictInt, Field(ge=0)]
Cell = tuple[str, int]


class Intervention(BaseModel):
    """What all interventions carry: the sites (a glob over names) and heads they are for, None for all."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    sites: str | None = None
    heads: tuple[StrictInt, ...] | None = None

    def found_sites(self, model: Sites) -> list[str]:
        """The sites it is for. Raises PlanError where there is none, or where it does not say which kind."""
        if self.sites is None:
            kinds = dict.fromkeys(site.rpartition(".")[0] for site in model.sites)
            if len(kinds) > 1:
                raise PlanError(
                    f"This model has several kinds of attention, so the plan must say which sites it is for: "
                    f"{', '.join(f'{kind}.*' for kind in kinds)}."
                )
        found = [site for site in model.sites if self.sites is None or fnmatch.fnmatchcase(site, self.sites)]
        if not found:
            raise PlanError(
                f"No attention site is called “{self.sites}”: this model has {_span(model.sites)}."
            )
        return found

    def targets(self, model: Sites) -> list[Cell]:
        """The (site, head) pairs it is for. Raises PlanError as `found_sites`, or for a head there is not."""
        sites = self.found_sites(model)
        for site in sites:
            count = model.attention_of(site).heads
            for head in self.heads or ():
                if head not in range(count):
                    raise PlanError(
                        f"There is no head {head}: this model's layers have heads 0 to {count - 1}.",
                        head=head,
                    )
        every = {site: range(model.attention_of(site).heads) for site in sites}
        return [
            (site, head)
            for site in sites
            for head in (every[site] if self.heads is None else dict.fromkeys(self.heads))
        ]

    def where(self) -> str:
        """The restriction in words, with a leading space, or nothing."""
        heads = "" if self.heads is None else f" in heads {', '.join(map(str, self.heads))}"
        return heads + ("" if self.sites is None else f" at {self.sites}")


class SetMask(Intervention):
    """Replaces the structural mask; padding stays closed."""

    kind: Literal["set_mask"]
    rule: Annotated[StructuralRule, Field(discriminator="name")]
    sets: ClassVar[str] = "mask"

    def in_words(self) -> str:
        """What it does, for readers."""
        return f"{mask_in_words(self.rule)} mask{self.where()}"


class Block(Intervention):
    """Closes one query–key pair: its weight becomes 0, the others of the row share it out."""

    kind: Literal["block"]
    query: Index
    key: Index

    @property
    def sets(self) -> str:
        """What no other step may set too."""
        return f"pair {self.query} → {self.key}"

    def in_words(self) -> str:
        """What it does, for readers."""
        return f"{self.query} → {self.key} blocked{self.where()}"


class SetScale(Intervention):
    """score = q·k × rule × times, before the mask. `times` = f equals multiplying q (after rotation) by f."""

    kind: Literal["set_scale"]
    rule: ScaleRule = "own"
    times: Annotated[StrictFloat, Field(allow_inf_nan=False, ge=-1e6, le=1e6)] = 1.0
    sets: ClassVar[str] = "scale"

    def in_words(self) -> str:
        """What it does, for readers."""
        names = {"own": "own scale", "none": "no scale", "inv_sqrt": "scale 1/√d_k", "inv": "scale 1/d_k"}
        name = names[self.rule]
        return name + ("" if self.times == 1 else f" × {self.times:g}") + self.where()

    def scale(self, model: Sites, site: str) -> float:
        """The scale this sets at a site."""
        width = model.attention_of(site).head_width
        rules: dict[ScaleRule, float] = {
            "own": model.scale_of(site),
            "none": 1.0,
            "inv_sqrt": width**-0.5,
            "inv": 1 / width,
        }
        return rules[self.rule] * self.times


class SetPosition(Intervention):
    """Changes what a stack is told of positions: nothing, or each token another's position.

    `base` replaces the rope base. From `from_layer` on, where positions enter at every layer.
    """

    kind: Literal["set_position"]
    heads: None = None
    mode: PositionMode = "own"
    seed: Index = 0
    by: Annotated[StrictInt, Field(ge=-(2**31), le=2**31)] = 0
    base: Annotated[StrictFloat, Field(gt=0, allow_inf_nan=False)] | None = None
    from_layer: Index = 0
    sets: ClassVar[str] = "position"

    def in_words(self) -> str:
        """What it does, for readers."""
        names = {
            "own": "own positions",
            "off": "no positions",
            "shuffle": f"positions shuffled (seed {self.seed})",
            "reverse": "positions reversed",
            "shift": f"positions shifted by {self.by}",
        }
        base = "" if self.base is None else f", rope base {self.base:g}"
        start = f" from layer {self.from_layer}" if self.from_layer else ""
        return names[self.mode] + base + start + self.where()


class AblateHead(Intervention):
    """Takes a head's output away, or makes it the same at every position, or its weights uniform."""

    kind: Literal["ablate_head"]
    mode: Literal["zero", "mean", "uniform"] = "zero"
    sets: ClassVar[str] = "head"

    def in_words(self) -> str:
        """What it does, for readers."""
        names = {"zero": "output zeroed", "mean": "output replaced by its mean", "uniform": "weights uniform"}
        return f"{names[self.mode]}{self.where()}"


class SetAttention(Intervention):
    """Gives heads these weights, whatever their q and k say."""

    kind: Literal["set_attention"]
    weights: tuple[tuple[Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)], ...], ...]
    sets: ClassVar[str] = "head"

    def in_words(self) -> str:
        """What it does, for readers."""
        return f"weights given by hand{self.where()}"


class _LayerStep(Intervention):
    """An intervention on whole layers: `sites` chooses the layers, by their self-attention."""

    heads: None = None

    def layers(self, model: Sites) -> list[tuple[str, int]]:
        """The (stack, layer) pairs it is for. Raises PlanError as `found_sites`."""
        sites = self.found_sites(model)
        return list(dict.fromkeys((site.partition(".")[0], layer_of(site)) for site in sites))


class DropSublayer(_LayerStep):
    """Leaves a sublayer out: x stays x."""

    kind: Literal["drop_sublayer"]
    sublayer: Sublayer

    @property
    def sets(self) -> str:
        """What no other step may set too."""
        return f"{self.sublayer} sublayer"

    def in_words(self) -> str:
        """What it does, for readers."""
        return f"{self.sublayer} left out{self.where()}"


class DropResidual(_LayerStep):
    """Leaves out the x of x + f(x)."""

    kind: Literal["drop_residual"]
    sublayer: Sublayer

    @property
    def sets(self) -> str:
        """What no other step may set too."""
        return f"{self.sublayer} residual"

    def in_words(self) -> str:
        """What it does, for readers."""
        return f"no residual around {self.sublayer}{self.where()}"


class DropNorm(_LayerStep):
    """Leaves the norm of a sublayer out."""

    kind: Literal["drop_norm"]
    sublayer: Sublayer

    @property
    def sets(self) -> str:
        """What no other step may set too."""
        return f"{self.sublayer} norm"

    def in_words(self) -> str:
        """What it does, for readers."""
        return f"no norm at {self.sublayer}{self.where()}"


AnyIntervention = Annotated[
    SetMask
    | Block
    | SetScale
    | SetPosition
    | AblateHead
    | SetAttention
    | DropSublayer
    | DropResidual
    | DropNorm,
    Field(discriminator="kind"),
]
KINDS = (
    *("set_mask", "block", "set_scale", "set_position", "ablate_head", "set_attention"),
    *("drop_sublayer", "drop_residual", "drop_norm"),
)


def _span(sites: Sequence[str]) -> str:
    return sites[0] if len(sites) == 1 else f"{sites[0]} to {sites[-1]}"
