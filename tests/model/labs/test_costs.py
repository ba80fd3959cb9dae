import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from model.cache import Cache
from model.inputs import Inputs
from model.labs.costs import (
    Lengths,
    attention_numbers,
    cache_numbers,
    seen,
    source_operations,
    token_operations,
)
from model.labs.counting import weights
from model.labs.published import published
from model.labs.stated import read_config
from model.rules import Bidirectional, Causal, Window
from model.transformer import Transformer
from tests.parity.families import ROWS, inputs
from tests.tiny_families import BART, T5, WHISPER

SMALL = {
    "bert": {"model_type": "bert", "num_hidden_layers": 3, "num_attention_heads": 5, "hidden_size": 60}
    | {"intermediate_size": 70, "vocab_size": 97, "architectures": ["BertForMaskedLM"]},
    "albert": {"model_type": "albert", "num_hidden_layers": 3, "num_attention_heads": 5, "hidden_size": 60}
    | {
        "intermediate_size": 70,
        "vocab_size": 97,
        "embedding_size": 20,
        "architectures": ["AlbertForMaskedLM"],
    },
    "llama": {"model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 6, "hidden_size": 60}
    | {"num_key_value_heads": 2, "intermediate_size": 70, "vocab_size": 97},
    "bart": BART,
    "t5": T5,
    "whisper": WHISPER,
}
TOKENS = 11


def _row(name):
    return next(row for row in ROWS if row.family == name)


def _lengths(name, config):
    return Lengths.of(config, TOKENS) if name in {"bert", "albert", "llama"} else Lengths(TOKENS, 14)


@pytest.mark.parametrize("name", SMALL)
def test_operations_are_those_torch_counts_while_the_model_runs(name):
    checkpoint = read_config(SMALL[name])
    config = checkpoint.config
    lengths = _lengths(name, config)
    model = Transformer(config).double()
    given = inputs(_row(name), lengths.tokens, lengths.source)
    if given.mel is not None:
        given = Inputs(given.ids, mel=given.mel.double())
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.logits(model(given, fused=False))
    found = weights(checkpoint)
    # Torch multiplies whole matrices, so that every query costs what the last one does.
    expected = lengths.tokens * token_operations(config, found, lengths)
    expected += lengths.source * source_operations(config, found, lengths)
    assert counter.get_total_flops() == expected


@pytest.mark.parametrize("name", ["llama", "bart", "t5", "whisper"])
def test_cache_is_what_generation_keeps(name):
    checkpoint = read_config(SMALL[name])
    lengths, cache = _lengths(name, checkpoint.config), Cache()
    with torch.no_grad():
        Transformer(checkpoint.config)(inputs(_row(name), lengths.tokens, lengths.source), cache=cache)
    kept = sum(k.numel() + v.numel() for k, v in cache._kept.values())
    assert cache_numbers(checkpoint.config, lengths) == kept


def test_published_costs_by_hand():
    gpt2 = read_config(published().models["gpt2"].config)
    lengths = Lengths.of(gpt2.config, 1024)
    assert cache_numbers(gpt2.config, lengths) == 2 * 12 * 768 * 1024
    assert attention_numbers(gpt2.config, lengths) == 12 * 12 * 1024**2
    matrices = 2 * (12 * 12 * 768**2 + 768 * 50257)
    assert token_operations(gpt2.config, weights(gpt2), lengths) == matrices + 4 * 12 * 768 * 1024
    grouped = read_config(published().models["llama3-8b"].config).config
    assert cache_numbers(grouped, Lengths.of(grouped, 1)) == 2 * 32 * 8 * 128


def test_a_window_bounds_cache_and_operations():
    mistral = read_config(published().models["mistral-7b"].config)
    short, long, longer = (Lengths.of(mistral.config, n) for n in (4095, 4096, 100_000))
    assert cache_numbers(mistral.config, short) < cache_numbers(mistral.config, long)
    assert cache_numbers(mistral.config, long) == cache_numbers(mistral.config, longer)
    found = weights(mistral)
    assert token_operations(mistral.config, found, long) == token_operations(mistral.config, found, longer)


def test_encoders_keep_nothing_and_sound_has_its_own_length():
    bert = read_config(published().models["bert-base"].config).config
    assert cache_numbers(bert, Lengths.of(bert, 512)) == 0
    whisper = read_config(published().models["whisper-tiny"].config).config
    assert Lengths.of(whisper, 10) == Lengths(10, 1500)
    sites = 4 * 6 * (1500 * 1500 + 10 * 10 + 10 * 1500)
    assert attention_numbers(whisper, Lengths.of(whisper, 10)) == sites


def test_keys_that_the_last_token_sees():
    assert [seen(rule, 10) for rule in (Bidirectional(), Causal(), Window(3, 0), Window(30, 5))] == [
        10,
        10,
        4,
        10,
    ]
