"""A plan: the interventions of one run, checked against a model and turned into what the forward reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from model.config import Sites
from model.errors import PlanError
from model.interventions import (
    AblateHead,
    AnyIntervention,
    Block,
    Cell,
    DropNorm,
    DropResidual,
    DropSublayer,
    Intervention,
    SetAttention,
    SetMask,
    SetPosition,
    SetScale,
)
from model.overruled import overruled, refuse_idle
from model.rules import AllOf, Blocked, Custom, Given, MaskRule, Pattern, Prefix, ScoreRule, Uniform


@dataclass(frozen=True)
class Program:
    """What a plan comes to for one input: score rules by site, changes of heads, positions and blocks.

    `outputs` says of a site's heads whether their output becomes zero or its mean. `left_out` names, by
    (stack, layer), what a block leaves out: "attention sublayer", "ffn residual", "cross norm" …
    """

    rules: Mapping[str, ScoreRule]
    outputs: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    positions: Mapping[str, SetPosition] = field(default_factory=dict)
    left_out: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)


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

    def program(self, model: Sites, tokens: int, source_tokens: int = 0) -> Program:
        """The program for an input of `tokens` (and `source_tokens` in an encoder beside a decoder).

        Raises PlanError where the plan does not fit the model or the input.
        """
        return Program(
            rules=self.score_rules(model, tokens, source_tokens),
            outputs=self._outputs(model),
            positions=self._positions(model),
            left_out=self._left_out(model),
        )

    def score_rules(self, model: Sites, tokens: int, source_tokens: int = 0) -> dict[str, ScoreRule]:
        """The score rule of every site. Raises PlanError where the plan does not fit model or input."""
        self._refuse_twice(model)
        refuse_idle(self._acting(model), model)
        masks, scales = self._masks(model, tokens, source_tokens), self._scales(model)
        patterns = self._patterns(model, tokens, source_tokens)
        rules = {}
        for site in model.sites:
            heads, scale, mask = _heads(model, site), model.scale_of(site), model.mask_of(site)
            rules[site] = ScoreRule(
                tuple(scales.get((site, head), scale) for head in heads),
                tuple(masks.get((site, head), mask) for head in heads),
                softcap=model.attention_of(site).softcap,
                patterns=tuple((head, pattern) for (at, head), pattern in patterns.items() if at == site),
            )
        return rules

    def canonical(self, model: Sites) -> "Plan":
        """The plan without what changes nothing, in one order, so that equal runs have equal plans.

        Raises PlanError where a step has no target, two set the same thing, or one undoes another.
        """
        self._refuse_twice(model)
        acting = self._acting(model)
        refuse_idle(acting, model)
        steps = [_tidied(step, model) for step in acting]
        return Plan(
            interventions=tuple(sorted(steps, key=lambda step: json.dumps(_plain(step), sort_keys=True)))
        )

    def as_json(self) -> list[dict[str, object]]:
        """The plan as a JSON list with sorted keys."""
        return [dict(sorted(_plain(step).items())) for step in self.interventions]

    def in_words(self) -> str:
        """The plan for readers: "causal mask; 3 → 1 blocked"."""
        return "; ".join(step.in_words() for step in self.interventions) or "the model's own"

    def notices(self, model: Sites) -> list[str]:
        """What a reader of the plan may not expect: where one step keeps another from acting."""
        return overruled(self._acting(model), model)

    def _acting(self, model: Sites) -> list[AnyIntervention]:
        return [step for step in self.interventions if not _is_own(step, model)]

    def _masks(self, model: Sites, tokens: int, source_tokens: int) -> dict[Cell, MaskRule]:
        masks: dict[Cell, MaskRule] = {}
        pairs: dict[Cell, set[tuple[int, int]]] = {}
        for step in self.interventions:
            if isinstance(step, SetMask):
                for site in step.found_sites(model):
                    _check_rule(step.rule, *lengths(site, tokens, source_tokens))
                masks |= dict.fromkeys(step.targets(model), step.rule)
            elif isinstance(step, Block):
                for cell in step.targets(model):
                    _check_pair(step, *lengths(cell[0], tokens, source_tokens))
                    pairs.setdefault(cell, set()).add((step.query, step.key))
        for cell, closed in pairs.items():
            own = masks.get(cell, model.mask_of(cell[0]))
            masks[cell] = AllOf((own, Blocked(frozenset(closed))))
        return masks

    def _scales(self, model: Sites) -> dict[Cell, float]:
        steps = [step for step in self.interventions if isinstance(step, SetScale)]
        return {cell: step.scale(model, cell[0]) for step in steps for cell in step.targets(model)}

    def _patterns(self, model: Sites, tokens: int, source_tokens: int) -> dict[Cell, Pattern]:
        patterns: dict[Cell, Pattern] = {}
        for step in self.interventions:
            if isinstance(step, SetAttention):
                for site in step.found_sites(model):
                    _check_weights(step, *lengths(site, tokens, source_tokens))
                patterns |= dict.fromkeys(step.targets(model), Given(step.weights))
            elif isinstance(step, AblateHead) and step.mode == "uniform":
                patterns |= dict.fromkeys(step.targets(model), Uniform())
        return patterns

    def _outputs(self, model: Sites) -> dict[str, dict[int, str]]:
        outputs: dict[str, dict[int, str]] = {}
        for step in self.interventions:
            if isinstance(step, AblateHead) and step.mode != "uniform":
                for site, head in step.targets(model):
                    outputs.setdefault(site, {})[head] = step.mode
        return outputs

    def _positions(self, model: Sites) -> dict[str, SetPosition]:
        changes: dict[str, SetPosition] = {}
        for step in self.interventions:
            if isinstance(step, SetPosition):
                found = step.found_sites(model)
                for stack in dict.fromkeys(site.partition(".")[0] for site in found):
                    _check_stack(
                        step, [site for site in model.sites if site.startswith(f"{stack}.self.")], found
                    )
                    changes[stack] = step
        return changes

    def _left_out(self, model: Sites) -> dict[tuple[str, int], frozenset[str]]:
        left_out: dict[tuple[str, int], frozenset[str]] = {}
        for step in self.interventions:
            if isinstance(step, DropSublayer | DropResidual | DropNorm):
                for place in step.layers(model):
                    _check_sublayer(step, place, model)
                    left_out[place] = left_out.get(place, frozenset()) | {step.sets}
        return left_out

    def _refuse_twice(self, model: Sites) -> None:
        claimed: set[tuple[str, str, int]] = set()
        for step in self.interventions:
            claims = {(step.sets, site, head) for site, head in step.targets(model)}
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
    "none_required": "a step of this kind is for whole layers, so it cannot choose heads",
    "union_tag_not_found": "it has no {discriminator}",
    "union_tag_invalid": "its {discriminator} is {tag!r}, but must be one of {expected_tags}",
}


def lengths(site: str, tokens: int, source_tokens: int) -> tuple[int, int]:
    """Number of queries and of keys at a site, for `tokens` and an encoder's `source_tokens`."""
    if site.split(".")[1] == "cross":
        return tokens, source_tokens
    own = source_tokens if source_tokens and site.startswith("encoder.") else tokens
    return own, own


def _heads(model: Sites, site: str) -> range:
    return range(model.attention_of(site).heads)


def _is_own(step: AnyIntervention, model: Sites) -> bool:
    sites = step.found_sites(model)
    if not step.targets(model):
        return True
    match step:
        case SetMask():
            return all(step.rule == model.mask_of(site) for site in sites)
        case SetScale():
            return all(step.scale(model, site) == model.scale_of(site) for site in sites)
        case SetPosition():
            return step.base is None and (step.mode == "own" or (step.mode == "shift" and step.by == 0))
        case _:
            return False


def _tidied(step: AnyIntervention, model: Sites) -> AnyIntervention:
    """The step with one spelling of where it applies, None where that is everywhere."""
    targets = step.targets(model)
    sites = list(dict.fromkeys(site for site, _ in targets))
    heads = None if step.heads is None else tuple(sorted({head for _, head in targets}))
    if heads is not None and all(len(heads) == len(_heads(model, site)) for site in sites):
        heads = None
    kinds = {site.rpartition(".")[0] for site in model.sites}
    # Where there are several kinds of attention, a step must name even all of them.
    everywhere = None if len(kinds) == 1 else "*"
    every_site = len(sites) == len(model.sites)
    return step.model_copy(update={"sites": everywhere if every_site else step.sites, "heads": heads})


def _check_pair(step: Block, queries: int, keys: int) -> None:
    for name, index, count in (("query", step.query, queries), ("key", step.key, keys)):
        if index >= count:
            raise PlanError(f"The plan blocks {name} {index}, but the input has tokens 0 to {count - 1}.")


def _check_rule(rule: MaskRule, queries: int, keys: int) -> None:
    if isinstance(rule, Prefix) and rule.length > keys:
        raise PlanError(f"A prefix of {rule.length} is longer than the input of {keys} tokens: shorten it.")
    if isinstance(rule, Custom) and (len(rule.allow) != queries or {*map(len, rule.allow)} != {keys}):
        raise PlanError(
            f"The custom mask is not {queries} × {keys}, the input's length both ways: resize it."
        )


def _check_weights(step: SetAttention, queries: int, keys: int) -> None:
    if len(step.weights) != queries or {*map(len, step.weights)} != {keys}:
        raise PlanError(
            f"The weights given by hand are not {queries} × {keys}, queries by keys: resize them."
        )


def _check_stack(step: SetPosition, own: list[str], found: list[str]) -> None:
    """Raises PlanError where positions change in less than a stack, or from beyond its last layer."""
    if not set(own) <= set(found):
        raise PlanError(
            f"Positions are those of a whole stack, not of single layers or of cross-attention: choose "
            f"{own[0].rpartition('.')[0]}.*, and with from_layer the first layer."
        )
    if step.from_layer >= len(own):
        raise PlanError(
            f"There is no layer {step.from_layer} to change positions from: there are {len(own)}."
        )


def _check_sublayer(
    step: DropSublayer | DropResidual | DropNorm, place: tuple[str, int], model: Sites
) -> None:
    stack, layer = place
    if step.sublayer == "cross" and f"{stack}.cross.{layer}" not in model.sites:
        raise PlanError(f"The {stack}'s layer {layer} has no cross-attention: leave that step out.")


def _plain(step: Intervention) -> dict[str, object]:
    return step.model_dump(mode="json")


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
