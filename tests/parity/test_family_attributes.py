"""Each attribute of each family, changed alone, is read as `transformers` reads it, or refused by name.

What is stated, and what our reader asks for though it is not stated, is found out, not listed.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from model.checkpoints.attributes import Attributes
from model.errors import AtlasError, ConfigError
from model.loading import LoadedModel, load_model
from tests.parity.families import ROWS, Both, arguments, inputs, one_thread

CHOSEN = {
    *("BERT", "RoBERTa", "XLM-R", "DistilBERT", "ALBERT", "GPT-2", "GPT-NeoX, parallel", "LLaMA", "Mistral"),
    *("Qwen2, window in later layers", "Qwen3, biased, window in later layers", "Gemma", "Gemma 2"),
    *("BLOOM, 5 heads", "BART", "Marian", "T5", "Whisper"),
}
# They say what the file is, not what the model does.
LABELS = {"model_type", "architectures", "dtype", "torch_dtype", "transformers_version", "max_length"}
# Where one more, or the opposite, would not be another model of the kind.
OTHERS: dict[str, Any] = {
    "hidden_act": "silu",
    "hidden_activation": "silu",
    "activation": "silu",
    "activation_function": "silu",
    "dense_act_fn": "gelu",
    "feed_forward_proj": "gated-gelu",
    "position_embedding_type": "relative_key",
    "summary_type": "mean",
    "summary_activation": "tanh",
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "pruned_heads": {"0": [1]},
    "layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention"],
    "rms_norm_eps": 0.3,
    "layer_norm_eps": 0.3,
    "layer_norm_epsilon": 0.3,
    "classifier_dropout": 0.5,
    "num_heads": 7,
    "n_head": 6,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 5,
    "use_bidirectional_attention": True,
    "forced_eos_token_id": 7,
    "suppress_tokens": [1],
    "begin_suppress_tokens": [1],
    "n_inner": 71,
    "pad_token_id": 6,
    "id2label": {"0": "a"},
    "label2id": {"a": 0},
}
# Attributes whose change is told in other words than their name.
IN_OTHER_WORDS = {
    "head_dim": "head width",
    "num_attention_heads": "query heads",
    "num_key_value_heads": "key heads",
    "feed_forward_proj": "dense_act_fn",
    "num_hidden_layers": "layers, but holds only",
}


# Without its padding id `transformers` takes one beyond the vocabulary here, and builds nothing.
UNBUILT = {("marian", "pad_token_id"), ("whisper", "pad_token_id")}


@pytest.fixture(scope="module", params=[row for row in ROWS if row.name in CHOSEN], ids=lambda row: row.name)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with one_thread():
        yield request.param.build(tmp_path_factory.mktemp("family"))


def _stated(both: Both) -> dict[str, Any]:
    return json.loads((both.folder / "config.json").read_text("utf-8"))


def _asked_for(both: Both, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the reader looks for at the top of a configuration, and what it takes where it finds nothing."""
    asked: dict[str, Any] = {}
    take = Attributes._take

    def noted(self: Attributes, name: str, default: object) -> object:
        if self._origin == "config.json":
            asked[name] = default
        return take(self, name, default)

    with monkeypatch.context() as patch:
        patch.setattr(Attributes, "_take", noted)
        load_model(both.folder)
    return asked


def _other(name: str, value: Any) -> Any:
    if name in OTHERS:
        return OTHERS[name]
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * 2 or 0.5
        case {"rope_theta": float(theta)}:
            return value | {"rope_theta": theta * 100}
        case None:
            return 5
    raise AssertionError(f"say in OTHERS what {name} = {value!r} may be instead")


def _read(both: Both, folder: Path, stated: Mapping[str, Any]) -> LoadedModel:
    folder.mkdir(exist_ok=True)
    weights = folder / "model.safetensors"
    if not weights.exists():
        weights.symlink_to(both.folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(stated), "utf-8")
    return load_model(folder)


@torch.no_grad()
def _ours(loaded: LoadedModel, both: Both) -> Tensor:
    final = loaded.transformer(inputs(both.row, 30, both.row.lengths[1][1]))
    return (loaded.transformer.logits(final) if loaded.config.head else final)[0]


@torch.no_grad()
def _theirs(both: Both, stated: Mapping[str, Any]) -> Tensor:
    """What `transformers` makes of the configuration, with the weights there are."""
    config = both.row.model.config_class.from_dict(dict(stated))
    config._attn_implementation = "eager"
    model = both.row.model(config).eval()
    weights = both.reference.state_dict()
    if both.row.family == "marian":
        weights = {name: tensor for name, tensor in weights.items() if "embed_positions" not in name}
    found = model.load_state_dict(weights, strict=False)
    assert not found.unexpected_keys
    assert all("embed_positions" in name for name in found.missing_keys)
    return model(**arguments(inputs(both.row, 30, both.row.lengths[1][1]))).logits[0]


def _refused_by_name(error: AtlasError, name: str) -> bool:
    # Weights of another shape are refused by the tensor's name.
    told = {name, IN_OTHER_WORDS.get(name, name)}
    return any(word in error.detail for word in told) or "tensor" in error.extra


def _error(found: Tensor, expected: Tensor) -> float:
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1)).item()


def test_each_attribute_is_read_or_refused(
    both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = _asked_for(both, monkeypatch) | _stated(both)
    seen, wrong = 0, {}
    own = _ours(both.ours, both)
    for name, value in attributes.items():
        if name in LABELS:
            continue
        changed = _stated(both) | {name: _other(name, value)}
        try:
            loaded = _read(both, tmp_path / "changed", changed)
        except AtlasError as error:
            seen += 1
            if not _refused_by_name(error, name):
                wrong[name] = error.detail
            continue
        found, expected = _ours(loaded, both), _theirs(both, changed)
        seen += not torch.equal(found, own)
        if _error(found, expected) > 1e-5:
            wrong[name] = f"{changed[name]!r} is off by {_error(found, expected):.2g}"
    assert not wrong
    assert seen > len(attributes) / 4


def test_an_attribute_left_out_means_what_it_means_to_transformers(both: Both, tmp_path: Path) -> None:
    """Older configurations state less, and what is not stated has had one meaning ever since."""
    read, wrong = 0, {}
    for name in _stated(both).keys() - LABELS:
        if (both.row.family, name) in UNBUILT:
            continue
        rest = {other: value for other, value in _stated(both).items() if other != name}
        try:
            loaded = _read(both, tmp_path / "less", rest)
        except AtlasError as error:
            if not _refused_by_name(error, name):
                wrong[name] = error.detail
            continue
        read += 1
        found, expected = _ours(loaded, both), _theirs(both, rest)
        if _error(found, expected) > 1e-5:
            wrong[name] = f"off by {_error(found, expected):.2g}"
    assert not wrong
    assert read > 5


def test_what_nobody_knows_is_refused_by_name(both: Both, tmp_path: Path) -> None:
    for name, value in {
        "rotary_wobble": 0.5,
        "num_local_experts": 4,
        "quantization_config": {"bits": 4},
    }.items():
        with pytest.raises(ConfigError) as caught:
            _read(both, tmp_path / "changed", _stated(both) | {name: value})
        assert name in caught.value.detail


def test_an_activation_that_is_not_implemented_is_refused_by_name(both: Both, tmp_path: Path) -> None:
    names = {"hidden_act", "hidden_activation", "activation", "activation_function", "feed_forward_proj"}
    stated = names & _stated(both).keys()
    if both.row.family == "bloom":
        assert not stated
        return
    (name,) = stated
    with pytest.raises(ConfigError) as caught:
        _read(both, tmp_path / "changed", _stated(both) | {name: "tanhshrink"})
    assert name in caught.value.detail
    assert "tanhshrink" in caught.value.detail
