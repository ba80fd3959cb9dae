"""Interventions: values that say what to change in a run.

The model is never touched; a `Plan` is passed to the run.
"""

import fnmatch
import json
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, TypeAdapter, ValidationError

from model.config import StackConfig
from model.errors import PlanError
from model.rules import AllOf, Blocked, Custom, MaskRule, Prefix, ScoreRule, StructuralRule, mask_in_words

ScaleRule = Literal["own", "none", "inv_sqrt", "inv"]


class Intervention(BaseModel):
    """What all interventions carry: the sites (a glob over names) and heads they are for, None for all."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    sites: str | None = None
    heads: tuple[StrictInt, ...] | None = None

    def targets(self, stack: StackConfig) -> list[tuple[str, int]]:
        """The (site, head) pairs this applies to in `stack`. Raises PlanError where there is none."""
        sites = [site for site in stack.sites if self.sites is None or fnmatch.fnmatchcase(site, self.sites)]
        if not sites:
            raise PlanError(
                f"No attention site is called “{self.sites}”: this model has {_span(stack.sites)}."
            )
        count = stack.attention.heads
        heads = range(count) if self.heads is None else self.heads
        for head in heads:
            if head not in range(count):
                raise PlanError(
                    f"There is no head {head}: this model's layers have heads 0 to {count - 1}.", head=head
                )
        return [(site, head) for site in sites for head in dict.fromkeys(heads)]

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
    query: Annotated[StrictInt, Field(ge=0)]
    key: Annotated[StrictInt, Field(ge=0)]

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

    def scale(self, stack: StackConfig) -> float:
        """The scale this sets on a head of `stack`."""
        width = stack.attention.head_width
        rules: dict[ScaleRule, float] = {
            "own": stack.attention.scale,
            "none": 1.0,
            "inv_sqrt": width**-0.5,
            "inv": 1 / width,
        }
        return rules[self.rule] * self.times


AnyIntervention = Annotated[SetMask | Block | SetScale, Field(discriminator="kind")]
KINDS = ("set_mask", "block", "set_scale")


class Plan(BaseModel):
    """The interventions of one run. Their order does not matter: no two may set the same thing."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    interventions: tuple[AnyIntervention, ...] = ()

    @classmethod
    def parse(cls, steps: object) -> "Plan":
        """The plan a JSON list describes. Raises PlanError with the reason in words."""
        try:
            return cls(interventions=_STEPS.validate_python(steps))
        except ValidationError as error:
            raise PlanError(_reason(error)) from error

    def score_rules(self, stack: StackConfig, tokens: int) -> dict[str, ScoreRule]:
        """The score rule of every site of `stack` for an input of `tokens`. Raises PlanError on a misfit."""
        self._refuse_twice(stack)
        cells = [(site, head) for site in stack.sites for head in range(stack.attention.heads)]
        masks = self._masks(stack, tokens)
        scalings = [step for step in self.interventions if isinstance(step, SetScale)]
        scales = {cell: step.scale(stack) for step in scalings for cell in step.targets(stack)}
        own = stack.attention.scale
        by_site: dict[str, list[tuple[float, MaskRule]]] = {site: [] for site in stack.sites}
        for site, head in cells:
            by_site[site].append((scales.get((site, head), own), masks.get((site, head), stack.mask)))
        return {
            site: ScoreRule(tuple(scale for scale, _ in rows), tuple(mask for _, mask in rows))
            for site, rows in by_site.items()
        }

    def canonical(self, stack: StackConfig) -> "Plan":
        """The plan without what changes nothing, in one order, so that equal runs have equal plans.

        Raises PlanError where a step has no target, or two set the same thing.
        """
        self._refuse_twice(stack)
        steps = []
        for step in self.interventions:
            targets = step.targets(stack)
            if not targets or _is_own(step, stack):
                continue
            sites = None if len({site for site, _ in targets}) == stack.layers else step.sites
            heads = tuple(sorted({head for _, head in targets}))
            every_head = len(heads) == stack.attention.heads
            steps.append(step.model_copy(update={"sites": sites, "heads": None if every_head else heads}))
        return Plan(
            interventions=tuple(sorted(steps, key=lambda step: json.dumps(_plain(step), sort_keys=True)))
        )

    def as_json(self) -> list[dict[str, object]]:
        """The plan as a JSON list with sorted keys."""
        return [dict(sorted(_plain(step).items())) for step in self.interventions]

    def in_words(self) -> str:
        """The plan for readers: "causal mask; 3 → 1 blocked"."""
        return "; ".join(step.in_words() for step in self.interventions) or "the model's own"

    def _masks(self, stack: StackConfig, tokens: int) -> dict[tuple[str, int], MaskRule]:
        masks: dict[tuple[str, int], MaskRule] = {}
        pairs: dict[tuple[str, int], set[tuple[int, int]]] = {}
        for step in self.interventions:
            if isinstance(step, SetMask):
                _check_rule(step.rule, tokens)
                masks |= dict.fromkeys(step.targets(stack), step.rule)
            elif isinstance(step, Block):
                _check_pair(step, tokens)
                for cell in step.targets(stack):
                    pairs.setdefault(cell, set()).add((step.query, step.key))
        for cell, closed in pairs.items():
            masks[cell] = AllOf((masks.get(cell, stack.mask), Blocked(frozenset(closed))))
        return masks

    def _refuse_twice(self, stack: StackConfig) -> None:
        claimed: set[tuple[str, str, int]] = set()
        for step in self.interventions:
            claims = {(step.sets, site, head) for site, head in step.targets(stack)}
            if claims & claimed:
                what, site, head = min(claims & claimed)
                raise PlanError(f"The plan sets the {what} of {site} head {head} twice: keep one.", site=site)
            claimed |= claims


OWN = Plan()
_STEPS: TypeAdapter[tuple[AnyIntervention, ...]] = TypeAdapter(tuple[AnyIntervention, ...])


# What pydantic says of these in its own jargon.
_PLAIN = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "unexpected_keyword_argument": "there is no such field",
    "model_attributes_type": "it must be an object",
    "dataclass_type": "it must be an object",
    "tuple_type": "it must be a list",
    "union_tag_not_found": "it has no {discriminator}",
    "union_tag_invalid": "its {discriminator} is {tag!r}, but must be one of {expected_tags}",
}


def _is_own(step: AnyIntervention, stack: StackConfig) -> bool:
    if isinstance(step, SetMask):
        return step.rule == stack.mask
    return isinstance(step, SetScale) and step.scale(stack) == stack.attention.scale


def _check_pair(step: Block, tokens: int) -> None:
    for name, index in (("query", step.query), ("key", step.key)):
        if index >= tokens:
            raise PlanError(f"The plan blocks {name} {index}, but the input has tokens 0 to {tokens - 1}.")


def _check_rule(rule: MaskRule, tokens: int) -> None:
    if isinstance(rule, Prefix) and rule.length > tokens:
        raise PlanError(f"A prefix of {rule.length} is longer than the input of {tokens} tokens: shorten it.")
    if isinstance(rule, Custom) and {len(rule.allow), *map(len, rule.allow)} != {tokens}:
        raise PlanError(
            f"The custom mask is not {tokens} × {tokens}, the input's length both ways: resize it."
        )


def _plain(step: Intervention) -> dict[str, object]:
    return step.model_dump(mode="json")


def _span(sites: Sequence[str]) -> str:
    return sites[0] if len(sites) == 1 else f"{sites[0]} to {sites[-1]}"


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    where = " ".join(str(part) for part in first["loc"])
    plain = _PLAIN.get(first["type"])
    message = (
        first["msg"][0].lower() + first["msg"][1:] if plain is None else plain.format(**first.get("ctx", {}))
    )
    if not where:
        return "A plan is a JSON list of steps, each an object with a kind: mend it or leave it out."
    return f"The plan cannot be read at step {where}: {message}."
