"""Text token by token: each new token is run once, the keys and values of the earlier ones are kept."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import torch

from model.cache import Cache
from model.inputs import Inputs
from model.masks import sees_ahead
from model.plan import OWN, Plan
from model.transformer import Transformer


@torch.inference_mode()
def greedy(
    model: Transformer, inputs: Inputs, stop: Collection[int], limit: int, plan: Plan = OWN
) -> Iterator[int]:
    """The likeliest token after `inputs`, then after that one, until one of `stop` or `limit` new tokens.

    One sequence at a time; a token of `stop` is not given. Raises PlanError where the plan does not fit.
    Under a plan that lets a token change what earlier ones do, all of them are run again for each new one.
    """
    cache = Cache() if _is_steady(model, inputs, plan) else None
    for _ in range(limit):
        final = model(inputs, plan, cache=cache)  # [1, new tokens, D]
        token = int(model.logits(final[:, -1:])[0, 0].argmax())
        if token in stop:
            return
        yield token
        longer = torch.cat((inputs.ids, inputs.ids.new_tensor([[token]])), dim=1)  # [1, T + 1]
        segments = (
            None if inputs.segments is None else torch.cat((inputs.segments, inputs.segments[:, -1:]), dim=1)
        )
        inputs = replace(inputs, ids=longer, segments=segments)


def _is_steady(model: Transformer, inputs: Inputs, plan: Plan) -> bool:
    """Whether what a token does stays the same when more tokens follow, so that it need not run again."""
    stack = model.config.stack
    program = model.program(plan, inputs.tokens, inputs.source_tokens)
    change = program.positions.get(stack.name)
    if change is not None and change.mode in {"reverse", "shuffle"}:
        return False
    if any("mean" in program.outputs.get(site, {}).values() for site in stack.sites):
        return False
    return not any(sees_ahead(mask) for site in stack.self_sites for mask in program.rules[site].masks)
