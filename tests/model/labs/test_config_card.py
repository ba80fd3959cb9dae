import json
import time

import pytest
from pydantic import ValidationError

from model.errors import AtlasError, ConfigError, InputError
from model.labs import config_card
from model.labs.bench import Bench
from model.labs.parameters.families import ConfigCard
from model.labs.published import published

# SmolLM2-135M as its authors publish it, other attributes included.
SMOLLM2 = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "hidden_act": "silu",
    "hidden_size": 576,
    "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536,
    "is_llama_config": True,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_interleaved": False,
    "rope_scaling": None,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 49152,
}
BERT = dict(published().models["bert-base"].config)


def run(config, **values):
    text = config if isinstance(config, str) else json.dumps(config)
    return config_card.run(ConfigCard(text=text, **values), Bench())


def test_a_pasted_configuration_gets_its_card():
    facts = run(SMOLLM2).facts
    assert facts["parameters"] == 134_515_008
    assert (facts["family"], facts["readout"]) == ("llama", "logits")
    assert facts["cache_bytes_a_token"] == 2 * 30 * 3 * 64 * 2


def test_the_default_is_gpt2_small():
    result = config_card.run(ConfigCard(), Bench())
    assert result.facts["parameters"] == 124_439_808
    assert all(check.holds for check in result.checks)


def test_what_the_text_does_not_say_is_said():
    for stated in ({}, {"n_layer": None}):
        result = run({"model_type": "gpt2", "n_embd": 1536, **stated})
        (note,) = [note for note in result.notes if note.startswith("Not in the text")]
        assert "n_layer = 12" in note
        assert "n_embd" not in note
        assert result.facts["assumed"]["vocab_size"] == 50257
    assert not set(run(SMOLLM2).facts["assumed"]) & set(SMOLLM2)


def test_families_have_their_article():
    assert run(SMOLLM2).facts["a_family"] == "A llama"
    assert run({"model_type": "albert"}).facts["a_family"] == "An albert"


def test_a_masked_head_is_counted_where_the_class_has_one():
    bare, masked = run(BERT).facts, run(BERT | {"architectures": ["BertForMaskedLM"]}).facts
    assert masked["parameters"] - bare["parameters"] == 768 * 768 + 768 + 2 * 768 + 30522
    assert (bare["readout"], masked["readout"]) == ("embedding", "masked")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (SMOLLM2 | {"mixture": 8}, "mixture = 8"),
        (SMOLLM2 | {"hidden_act": "quick"}, "hidden_act = 'quick'"),
        (SMOLLM2 | {"hidden_size": 577}, "hidden_size = 577"),
        (SMOLLM2 | {"num_hidden_layers": 2**20 + 1}, "num_hidden_layers"),
        (SMOLLM2 | {"num_hidden_layers": -1}, "num_hidden_layers"),
        (SMOLLM2 | {"num_attention_heads": "nine"}, "num_attention_heads = 'nine'"),
        (SMOLLM2 | {"model_type": "mamba"}, "model_type 'mamba'"),
        ({}, "does not say model_type"),
        ({"model_type": None}, "does not say model_type"),
        ({"model_type": "qwen3", "num_attention_heads": 8}, "default: num_key_value_heads = 32."),
        ({"model_type": "gpt2", "n_embd": 64}, "default: n_head = 12."),
        ({"model_type": ["gpt2"]}, "model_type"),
        ('{"model_type": "gpt2", "n_layer": 2, "n_layer": 3}', "n_layer twice"),
        ("[1, 2]", "not an object"),
        ("GPT-2", "not readable JSON"),
        ("models/config.json", "not its name or path"),
        ("[" * 50_000, "not readable JSON"),
        ('{"model_type": "gpt2", "n_layer": ' + "9" * 5000 + "}", "not readable JSON"),
        ('{"model_type": "gpt2", "layer_norm_epsilon": NaN}', "layer_norm_epsilon"),
        (BERT | {"architectures": [["BertModel"], 3]} | {"surprise": True}, "surprise = True"),
    ],
)
def test_what_is_not_understood_is_named(config, said):
    with pytest.raises((ConfigError, InputError), match=r".") as caught:
        run(config)
    assert isinstance(caught.value, AtlasError)
    assert said in caught.value.detail


def test_a_text_too_long_for_a_configuration_is_refused():
    with pytest.raises(ValidationError, match="at most"):
        ConfigCard(text="x" * 100_001)


def test_sizes_far_beyond_memory_are_counted_at_once():
    config = {"model_type": "gpt2", "n_layer": 2**20, "n_embd": 2**18, "n_head": 2**10, "vocab_size": 2**20}
    begun = time.process_time()
    assert run(config, tokens=2**20).facts["parameters"] > 12 * 2**56
    assert time.process_time() - begun < 20


@pytest.mark.parametrize("name", sorted(published().models))
def test_every_published_configuration_can_be_pasted(name):
    model = published().models[name]
    beside = {"bert-base": 590_592, "bert-large": 1_049_600, "roberta-base": 590_592}.get(name, 0)
    assert abs(run(dict(model.config)).facts["parameters"] + beside - model.count) <= model.rounded
