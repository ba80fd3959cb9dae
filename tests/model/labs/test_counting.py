import json
from typing import Any

import pytest
import torch
import transformers

from model.labs.counting import EMBEDDINGS, block_matrices, by_part, pooler, weights
from model.labs.published import published
from model.labs.stated import read_config
from tests.parity.families import ROWS, Row


def _reference(kind: str, config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """The configuration as `transformers` writes it, and the sizes of the parameters it builds."""
    of_class = getattr(transformers, kind)
    stated = of_class.config_class(**config)
    stated.architectures = [kind]
    with torch.device("meta"):
        model = of_class(stated)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    return json.loads(stated.to_json_string(use_diff=True)), sizes


def _outside(row: Row, name: str) -> bool:
    """What `transformers` counts among the parameters and no model here holds."""
    return "pooler" in name or (row.family == "marian" and "embed_positions" in name)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_every_family_has_as_many_parameters_as_in_transformers(row):
    stated, sizes = _reference(row.kind, dict(row.config))
    checkpoint = read_config(stated)
    found = weights(checkpoint)
    # A bias that BART keeps as a buffer, which is no parameter to torch.
    buffer = checkpoint.config.embedding.vocabulary if row.family in {"bart", "marian"} else 0
    assert sum(one.parameters for one in found) - buffer == sum(
        size for name, size in sizes.items() if not _outside(row, name)
    )
    assert sum(by_part(found).values()) == sum(one.parameters for one in found)


LARGE = {
    "llama2-7b": "LlamaForCausalLM",
    "llama3-8b": "LlamaForCausalLM",
    "mistral-7b": "MistralForCausalLM",
    "gpt2-xl": "GPT2LMHeadModel",
    "gpt3": "GPT2LMHeadModel",
    "t5-base": "T5ForConditionalGeneration",
    "whisper-small": "WhisperForConditionalGeneration",
    "bert-large": "BertModel",
    "roberta-base": "RobertaModel",
}


@pytest.mark.parametrize("name", LARGE)
def test_published_configurations_give_what_transformers_builds(name):
    model = published().models[name]
    _, sizes = _reference(LARGE[name], dict(model.config))
    checkpoint = read_config(model.config)
    counted = sum(one.parameters for one in weights(checkpoint))
    assert counted + (pooler(checkpoint.config) if model.beside else 0) == sum(sizes.values())


def test_a_million_layers_are_counted_without_being_built():
    config = dict(published().models["gpt2"].config)
    one, many = (read_config(config | {"n_layer": layers}) for layers in (1, 2**20))
    block = 12 * 768**2 + 13 * 768
    assert sum(w.parameters for w in weights(many)) - sum(w.parameters for w in weights(one)) == block * (
        2**20 - 1
    )


def test_parts_are_what_their_names_say():
    parts = by_part(weights(read_config(published().models["whisper-tiny"].config)))
    assert parts["token embedding"] == 51865 * 384
    assert parts["position embedding"] == (1500 + 448) * 384
    assert parts["convolutions over sound"] == 3 * 80 * 384 + 384 + 3 * 384 * 384 + 384
    # Four matrices a layer, of which q, v and o have a bias and k has none.
    assert parts["cross-attention"] == 4 * (4 * 384**2 + 3 * 384)
    assert parts["attention"] == 2 * parts["cross-attention"]
    assert parts["norms"] == 2 * 384 * (4 * 2 + 4 * 3 + 2)
    assert "head" not in parts


def test_gpt2_small_without_embeddings_is_what_scaling_laws_call_its_size():
    parts = by_part(weights(read_config(published().models["gpt2"].config)))
    assert (
        sum(parts.values()) - sum(parts.get(part, 0) for part in EMBEDDINGS)
        == 12 * (12 * 768**2 + 13 * 768) + 1536
    )


def test_matrices_of_grouped_gated_blocks_by_formula():
    stack = read_config(published().models["mistral-7b"].config).config.stack
    assert block_matrices(stack) == 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
