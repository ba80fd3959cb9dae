"""What holds for models of every shape: rows are distributions, masks exact, memory linear in the length."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from model.config import Learned
from model.inputs import Inputs
from model.masks import allowed
from model.transformer import Transformer
from tests import tiny_models as tiny
from tests.model.test_transformer import Largest


@pytest.mark.parametrize("name", tiny.NAMES)
@pytest.mark.parametrize("times", [1.0, 1e6, -1e6])
def test_rows_sum_to_one_and_what_is_closed_is_zero_whatever_the_scores(name: str, times: float) -> None:
    model = tiny.build(name).float()
    given = tiny.inputs(model)
    given = given if given.mel is None else replace(given, mel=given.mel.float())
    ran = tiny.trace(model, [{"kind": "set_scale", "times": times, "sites": "*"}], given)
    assert ran.finite
    for site, found in ran.sites.items():
        weights = tiny.weights(ran, site)
        assert (weights.sum(-1) - 1).abs().max() <= 1e-6
        seen = allowed(model.config.mask_of(site), range(found.queries), range(found.keys))
        assert weights[:, ~seen].sum() == 0
        masked = found.attention(found.all_heads, range(found.queries), "masked")
        assert torch.equal(masked == -torch.inf, (~seen).expand_as(masked))


def _longer(config: Any, length: int) -> Any:
    def stretched(stack: Any) -> Any:
        place = stack.position
        longer = {"rows": length + place.offset} if isinstance(place, Learned) else {"max_positions": length}
        return replace(stack, layers=1, layer_masks=None, position=replace(place, **longer))

    encoder = config.encoder and replace(config.encoder, stack=stretched(config.encoder.stack))
    return replace(config, stack=stretched(config.stack), encoder=encoder)


def _input(model: Transformer, length: int) -> Inputs:
    ids = torch.zeros(1, length, dtype=torch.long)
    return Inputs(ids, source=Inputs(ids)) if model.encoder is not None else Inputs(ids)


@pytest.mark.parametrize("name", [name for name in tiny.NAMES if name != "speech"])
def test_no_tensor_grows_with_the_square_of_the_length(name: str) -> None:
    sizes = []
    for length in (1024, 2048):
        with Largest() as seen:
            model = tiny.build(_longer(tiny.CONFIGS[name], length))
        built = seen.elements
        with Largest() as seen:
            ran = model.trace(_input(model, length), record=tiny.EVERYTHING)
        sizes.append((built, seen.elements, ran.nbytes))
    for small, large in zip(*sizes, strict=True):
        assert large <= 2 * small
