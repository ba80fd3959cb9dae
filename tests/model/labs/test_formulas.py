"""Sizes and costs in closed form, against counted tensors and against what torch did in small models."""

import json

import pytest

from model.labs import costs, formulas
from model.labs.counting import EMBEDDINGS, by_part, unembedding, weights
from model.labs.published import published
from model.labs.small_costs import small
from model.labs.stated import read_config
from model.labs.words import scaled
from tests.parity.families import ROWS


def stated(row):
    config = row.model.config_class(**row.config)
    config.architectures = [row.kind]
    return json.loads(config.to_json_string(use_diff=True))


CASES = {row.name: lambda row=row: stated(row) for row in ROWS}
CASES |= {name: lambda model=model: model.config for name, model in published().models.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_family_has_the_size_and_costs_of_the_formula(name):
    checkpoint = read_config(CASES[name]())
    config, found = checkpoint.config, weights(checkpoint)
    embeddings = sum(by_part(found).get(part, 0) for part in EMBEDDINGS) + unembedding(found)
    assert formulas.parameters(config) == sum(one.parameters for one in found)
    assert formulas.vocabulary_and_places(config) == embeddings
    for tokens, source in ((3, 4), (50, 30)):
        at = costs.Lengths(tokens, source if config.encoder else 0)
        given = (config, at.tokens, at.source)
        assert formulas.operations(*given) == costs.token_operations(config, found, at)
        assert formulas.source_operations(config, at.source) == costs.source_operations(config, found, at)
        assert formulas.cache(*given) == costs.cache_numbers(config, at)
        assert formulas.attention(*given) == costs.attention_numbers(config, at)


@pytest.mark.parametrize("name", CASES)
def test_a_small_model_of_every_family_does_what_is_counted(name):
    ran = small(read_config(CASES[name]()))
    config, at, found = ran.checkpoint.config, ran.lengths, weights(ran.checkpoint)
    work = at.tokens * costs.token_operations(config, found, at)
    assert ran.operations == work + at.source * costs.source_operations(config, found, at) > 0
    assert ran.kept == costs.cache_numbers(config, at)
    assert ran.attention == costs.attention_numbers(config, at) > 0


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"), (999, "999 B"), (999.96, "1 kB"), (1000, "1 kB"), (1.44e12, "1.44 TB"),
        (14_483_464_192, "14.48 GB"), (2.25e21, "2.25 ZB"), (1e30, "1.0 · 10⁶ YB"),
    ],
)  # fmt: skip
def test_amounts_have_the_unit_that_fits(number, words):
    assert scaled(number, "B").startswith(words)
