"""Each attribute of a configuration, changed alone, changes what comes out, or is refused by name."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.checkpoints.attributes import Attributes
from model.errors import AtlasError, CheckpointError, ConfigError
from model.loading import load_model
from tests import tiny
from tests.parity.references import ours

# A change of shape is refused by the tensors, a change of meaning must be seen in the numbers.
SHAPES = {
    "bert": {
        "hidden_size": 120,
        "num_hidden_layers": 2,
        "intermediate_size": 71,
        "max_position_embeddings": 47,
        "vocab_size": 96,
        "type_vocab_size": 2,
    },
    "llama": {
        "hidden_size": 120,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 3,
        "head_dim": 12,
        "intermediate_size": 73,
        "vocab_size": 88,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
    },
}
MEANINGS = {
    "bert": {"num_attention_heads": 6, "hidden_act": "relu", "layer_norm_eps": 1e-12},
    "llama": {
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_theta": 10000.0},
        "rope_scaling": {"rope_theta": 10000.0},
    },
}
REFUSED = {
    "bert": {
        "position_embedding_type": "relative_key",
        "is_decoder": True,
        "is_encoder_decoder": True,
        "add_cross_attention": True,
        "cross_attention_hidden_size": 60,
        "pruned_heads": {"0": [1]},
        "tie_word_embeddings": False,
        "quantization_config": {"quant_method": "gptq"},
        "rope_theta": 10000.0,
        "hidden_act": "quick_gelu",
        "layer_norm_eps": "small",
        "num_attention_heads": 7,
    },
    "llama": {
        "pruned_heads": {"0": [1]},
        "pretraining_tp": 2,
        "rope_interleaved": True,
        "is_encoder_decoder": True,
        "sliding_window": 16,
        "partial_rotary_factor": 0.5,
        "quantization_config": {"quant_method": "gptq"},
        "num_experts": 4,
        "num_local_experts": 4,
        "logit_scale": 0.5,
        "attn_logit_softcapping": 30.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 777.0, "factor": 4.0},
        "hidden_act": "quick_gelu",
        "head_dim": 13,
        "num_key_value_heads": 4,
        "attention_bias": 1,
        "num_hidden_layers": 10**9,
        "rms_norm_eps": 10**400,
    },
}
NESTED = [
    {"rope_type": "default", "partial_rotary_factor": 0.5},
    {"type": "default", "attention_factor": 2.0},
]
BASES: dict[str, tuple[dict[str, object], dict[str, Tensor]]] = {
    "bert": (tiny.BERT, tiny.bert_tensors()),
    "llama": (tiny.LLAMA, tiny.llama_tensors()),
}


def _cases(table: Mapping[str, Mapping[str, object]]) -> list[tuple[str, str, object]]:
    return [(family, name, value) for family, changes in table.items() for name, value in changes.items()]


def _run(folder: Path, family: str, **changed: object) -> Tensor:
    config, tensors = BASES[family]
    loaded = load_model(tiny.write(folder, config | changed, tensors), device="cpu", dtype="float32")
    run = ours(loaded, tiny.ids(17))
    return run.final if run.logits is None else run.logits


@pytest.mark.parametrize(("family", "name", "value"), _cases(MEANINGS))
def test_a_changed_meaning_changes_the_output(tmp_path: Path, family: str, name: str, value: object) -> None:
    own, changed = _run(tmp_path, family), _run(tmp_path, family, **{name: value})
    assert (own - changed).abs().max() > 1e-3


@pytest.mark.parametrize(("family", "name", "value"), _cases(SHAPES))
def test_a_changed_shape_is_refused(tmp_path: Path, family: str, name: str, value: object) -> None:
    with pytest.raises((CheckpointError, ConfigError)):
        _run(tmp_path, family, **{name: value})


@pytest.mark.parametrize(("family", "name", "value"), _cases(REFUSED))
def test_what_is_not_implemented_is_refused_by_name(
    tmp_path: Path, family: str, name: str, value: object
) -> None:
    with pytest.raises(AtlasError) as caught:
        _run(tmp_path, family, **{name: value})
    words = {"head_dim": "head width", "num_key_value_heads": "key heads", "num_hidden_layers": name}
    assert words.get(name, name) in caught.value.detail


@pytest.mark.parametrize("stated", NESTED)
@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_rope_settings_are_read_as_strictly(tmp_path: Path, place: str, stated: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        _run(tmp_path, "llama", **{place: stated})
    assert place in caught.value.detail
    assert list(stated)[-1] in caught.value.detail


def test_the_longest_input_is_read(tmp_path: Path) -> None:
    """LLaMA's only attribute that changes no number, but what is accepted."""
    assert tiny.llama(tmp_path, max_position_embeddings=99).config.stack.max_tokens == 99


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_no_attribute_that_is_read_was_forgotten_here(
    tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: set[str] = set()
    take = Attributes._take
    monkeypatch.setattr(
        Attributes, "_take", lambda self, name, default: read.add(name) or take(self, name, default)
    )
    _run(tmp_path, family)
    tested = {*SHAPES[family], *MEANINGS[family], *REFUSED[family], "max_position_embeddings"}
    assert read <= tested


STATED = {
    "bert": {
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "is_encoder_decoder": False,
        "add_cross_attention": False,
        "pruned_heads": {},
        "tie_word_embeddings": True,
        "hidden_dropout_prob": 0.1,
        "pooler_type": "first_token_transform",
    },
    "llama": {
        "pretraining_tp": 1,
        "rope_interleaved": False,
        "attention_dropout": 0.1,
        "is_llama_config": True,
    },
}


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_stated_default_changes_nothing(tmp_path: Path, family: str) -> None:
    assert torch.equal(_run(tmp_path, family, **STATED[family]), _run(tmp_path, family))


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_null_means_the_default(tmp_path: Path, family: str) -> None:
    assert torch.equal(_run(tmp_path, family, sliding_window=None), _run(tmp_path, family))
