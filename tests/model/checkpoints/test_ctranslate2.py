import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import WhisperConfig, WhisperForConditionalGeneration

from model.checkpoints.ctranslate2 import CTranslate2
from model.errors import AtlasError, CheckpointError, ConfigError
from model.inputs import Inputs
from model.loading import load_model
from tests import tiny, tiny_ct2

VALUES = {
    "a/single": torch.randn(2, 3, generator=torch.Generator().manual_seed(0)),
    "b/half": torch.arange(6).half().reshape(3, 2),
    "c/brain": torch.arange(4).bfloat16(),
    "d/byte": torch.tensor([[-128, 127]], dtype=torch.int8),
    "e/short": torch.tensor(-7, dtype=torch.int16),
    "f/int": torch.tensor([2**31 - 1], dtype=torch.int32),
}
CONFIG = WhisperConfig(
    vocab_size=97,
    d_model=20,
    encoder_layers=3,
    decoder_layers=2,
    encoder_attention_heads=5,
    decoder_attention_heads=4,
    encoder_ffn_dim=28,
    decoder_ffn_dim=24,
    num_mel_bins=6,
    max_source_positions=15,
    max_target_positions=12,
    decoder_start_token_id=90,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(0)
    state = WhisperForConditionalGeneration(CONFIG).state_dict()
    drawn = {name: tiny.draw(name, tuple(value.shape), random, 0.3) for name, value in state.items()}
    return drawn | {"proj_out.weight": drawn["model.decoder.embed_tokens.weight"]}


@pytest.fixture
def parts(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    return tiny_ct2.whisper(tensors, (5, 4))


def _file(folder: Path, content: bytes) -> Path:
    (folder / "model.bin").write_bytes(content)
    return folder / "model.bin"


def test_every_type_is_read_as_written(tmp_path: Path) -> None:
    source = CTranslate2(_file(tmp_path, tiny_ct2.pack(VALUES, {"z": "b/half"})))
    assert source.names == {*VALUES, "z"}
    assert source.specification == "WhisperSpec"
    for name, value in {**VALUES, "z": VALUES["b/half"]}.items():
        assert source.tensor(name).dtype == value.dtype
        assert torch.equal(source.tensor(name), value)
    assert source.scalars() == {"e/short": -7}


@pytest.mark.parametrize("precision", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_whisper_is_the_model_of_the_folder(
    tmp_path: Path,
    tensors: dict[str, Tensor],
    parts: tuple[dict[str, Tensor], dict[str, str]],
    precision: torch.dtype,
) -> None:
    rounded = {name: value.to(precision).float() for name, value in tensors.items()}
    reference = WhisperForConditionalGeneration(CONFIG).eval()
    reference.load_state_dict(rounded)
    reference.save_pretrained(tmp_path / "hf")
    variables = {
        name: value.to(precision) if value.is_floating_point() else value for name, value in parts[0].items()
    }
    one = load_model(tiny_ct2.write(tmp_path / "ct2", tiny_ct2.pack(variables, parts[1])))
    other = load_model(tmp_path / "hf")
    assert one.family == "whisper"
    assert (one.config.start, one.config.stop) == ((90, 91), (2,))
    assert one.config.encoder == other.config.encoder
    assert one.config.stack == other.config.stack
    for name, tensor in other.transformer.state_dict().items():
        assert torch.equal(one.transformer.state_dict()[name], tensor), name
    mel, ids = (
        torch.randn(1, 6, 30, generator=torch.Generator().manual_seed(1)),
        torch.tensor([[90, 91, 7, 8]]),
    )
    with torch.no_grad():
        expected = reference(input_features=mel, decoder_input_ids=ids).logits
    found = one.transformer.logits(one.transformer(Inputs(ids, mel=mel)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def _claims(
    name: bytes = b"x\0", shape: tuple[int, ...] = (2,), kind: int = 0, size: int = 8, count: int = 1
) -> bytes:
    head = struct.pack("<I", 6) + tiny_ct2.string("WhisperSpec") + struct.pack("<II", 3, count)
    dims = struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    return (
        head
        + struct.pack("<H", len(name))
        + name
        + dims
        + struct.pack("<BI", kind, size)
        + b"\0" * 8
        + b"\0" * 4
    )


GOOD = tiny_ct2.pack(VALUES, {"z": "b/half"})
DAMAGE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "cannot be read"),
    "cut in the version": (b"\6\0", "ends after 2 bytes"),
    "another version": (tiny_ct2.pack(VALUES, version=5), "it says 5"),
    "no file of this kind": (b"PK\3\4" * 20, "not a CTranslate2 file"),
    "cut in a variable": (GOOD[:60], "amid a/single"),
    "cut in the aliases": (GOOD[:-3], "amid a header"),
    "goes on": (GOOD + b"\0", "1 bytes after its last alias"),
    "a name without end": (_claims(b"xy"), "does not end where it should"),
    "a name that ends early": (_claims(b"x\0y\0"), "does not end where it should"),
    "a name of no bytes": (_claims(b""), "does not end where it should"),
    "a name that is no text": (_claims(b"\xff\0"), "not UTF-8"),
    "an unknown type": (_claims(kind=6), "type 6"),
    "more dimensions than any": (_claims(shape=(1,) * 255, size=4), "255 dimensions"),
    "a dimension of nothing": (_claims(shape=(0, 2), size=0), "2 dimensions"),
    "2^40 elements in 8 bytes": (_claims(shape=(2**20, 2**20)), "needs 4398046511104"),
    "2^62 elements that overflow": (_claims(shape=(2**31, 2**31, 4), size=0), "gives x 0 bytes"),
    "4 GB that are not there": (_claims(shape=(2**30 - 1,), size=2**32 - 4), "amid x"),
    "4 billion variables": (_claims(count=2**32 - 1), "does not end where it should|amid"),
    "one name twice": (
        GOOD.replace(tiny_ct2.string("c/brain"), tiny_ct2.string("b/half_")).replace(
            b"b/half_\0", b"b/half\0\0"
        ),
        "does not end where it should",
    ),
    "an alias of nothing": (tiny_ct2.pack(VALUES, {"z": "y"}), "cannot call y z"),
    "an alias of an alias": (tiny_ct2.pack(VALUES, {"y": "b/half", "z": "y"}), "cannot call y z"),
    "an alias over a variable": (tiny_ct2.pack(VALUES, {"b/half": "c/brain"}), "cannot call c/brain b/half"),
}


@pytest.mark.parametrize(("content", "named"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named_and_costs_no_memory(tmp_path: Path, content: bytes, named: str) -> None:
    file = _file(tmp_path, content)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=named) as caught:
            CTranslate2(file)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert "model.bin" in caught.value.detail


def test_a_variable_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    content = tiny_ct2.pack({"a": torch.ones(1), "b": torch.ones(1)}).replace(b"b\0", b"a\0")
    with pytest.raises(CheckpointError, match="holds a twice"):
        CTranslate2(_file(tmp_path, content))


Variables = dict[str, Tensor]
CHANGES: dict[str, tuple[Callable[[Variables], object], str]] = {
    "quantised": (lambda v: v.update({"decoder/embeddings/weight_scale": torch.ones(97)}), "quantised"),
    "another activation": (
        lambda v: v.update({"decoder/activation": torch.tensor(0, dtype=torch.int8)}),
        "activation",
    ),
    "ALiBi": (lambda v: v.update({"decoder/alibi": torch.tensor(1, dtype=torch.int8)}), "decoder/alibi"),
    "post-norm": (lambda v: v.update({"decoder/pre_norm": torch.tensor(0, dtype=torch.int8)}), "pre_norm"),
    "an unknown number": (
        lambda v: v.update({"decoder/sliding_window": torch.tensor(4.0)}),
        "sliding_window",
    ),
    "no heads": (lambda v: v.pop("encoder/num_heads"), "encoder/num_heads"),
    "heads that do not divide": (
        lambda v: v.update({"encoder/num_heads": torch.tensor(3, dtype=torch.int16)}),
        "encoder_attention_heads",
    ),
    "a key bias": (
        lambda v: v["encoder/layer_1/self_attention/linear_0/bias"].__setitem__(25, 0.5),
        "encoder/layer_1/self_attention/linear_0/bias",
    ),
    "a key bias of the memory": (
        lambda v: v["decoder/layer_0/attention/linear_1/bias"].__setitem__(0, 0.5),
        "decoder/layer_0/attention/linear_1/bias",
    ),
    "a lost tensor": (
        lambda v: v.pop("encoder/layer_2/ffn/linear_1/bias"),
        "encoder/layer_2/ffn/linear_1/bias",
    ),
    "a lost bias": (lambda v: v.pop("encoder/layer_0/self_attention/linear_0/bias"), "lacks the tensor"),
    "an unknown tensor": (lambda v: v.update({"decoder/more": torch.ones(3)}), "decoder/more"),
    "another shape": (
        lambda v: v.update({"encoder/conv2/bias": torch.ones(21)}),
        "encoder/conv2/bias the shape",
    ),
    "another rank": (
        lambda v: v.update({"encoder/conv1/weight": torch.ones(6)}),
        "encoder/conv1/weight the shape",
    ),
    "rows that cannot be shared": (
        lambda v: v.update({"decoder/layer_1/self_attention/linear_0/weight": torch.ones(1, 20)}),
        "decoder/layer_1/self_attention/linear_0/weight",
    ),
    "whole numbers for weights": (
        lambda v: v.update({"encoder/layer_norm/beta": torch.ones(20, dtype=torch.int8)}),
        "encoder/layer_norm/beta",
    ),
}


@pytest.mark.parametrize(("change", "named"), CHANGES.values(), ids=CHANGES)
def test_what_is_not_this_whisper_is_refused_by_name(
    tmp_path: Path,
    parts: tuple[Variables, dict[str, str]],
    change: Callable[[Variables], object],
    named: str,
) -> None:
    change(parts[0])
    with pytest.raises((CheckpointError, ConfigError)) as caught:
        load_model(tiny_ct2.write(tmp_path / "m", tiny_ct2.pack(*parts)))
    assert named in caught.value.detail


def test_an_untied_head_is_refused(tmp_path: Path, parts: tuple[Variables, dict[str, str]]) -> None:
    parts[0]["decoder/projection/weight"] = parts[0]["decoder/embeddings/weight"] + 1
    with pytest.raises(CheckpointError, match="ties decoder/projection/weight"):
        load_model(tiny_ct2.write(tmp_path / "m", tiny_ct2.pack(parts[0])))


def test_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TransformerSpec"):
        load_model(tiny_ct2.write(tmp_path / "m", tiny_ct2.pack(VALUES, specification="TransformerSpec")))


@pytest.mark.parametrize(
    "tokenizer", [None, "{}", '{"added_tokens": [{"content": "<|startoftranscript|>", "id": "90"}]}']
)
def test_a_folder_that_does_not_number_the_start_is_refused(
    tmp_path: Path, parts: tuple[Variables, dict[str, str]], tokenizer: str | None
) -> None:
    folder = tiny_ct2.write(tmp_path / "m", tiny_ct2.pack(*parts))
    (folder / "tokenizer.json").unlink()
    if tokenizer:
        (folder / "tokenizer.json").write_text(tokenizer)
    with pytest.raises(CheckpointError, match=r"does not number <\|"):
        load_model(folder)


def test_an_attribute_that_is_not_known_is_refused(
    tmp_path: Path, parts: tuple[Variables, dict[str, str]]
) -> None:
    folder = tiny_ct2.write(tmp_path / "m", tiny_ct2.pack(*parts))
    (folder / "config.json").write_text('{"layer_norm_epsilon": 0.1}')
    with pytest.raises(ConfigError, match="layer_norm_epsilon"):
        load_model(folder)


fuzz = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzz
@given(data=st.data())
def test_flipped_and_cut_files_raise_nothing_else(
    tmp_path: Path, parts: tuple[Variables, dict[str, str]], data: st.DataObject
) -> None:
    content = bytearray(tiny_ct2.pack(*parts))
    for _ in range(data.draw(st.integers(0, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    try:
        load_model(tiny_ct2.write(tmp_path / "m", bytes(content[:cut])))
    except AtlasError:
        return
    assert cut == len(content)


@fuzz
@given(content=st.binary(max_size=300), start=st.integers(0, len(GOOD)))
def test_random_bytes_are_refused(tmp_path: Path, content: bytes, start: int) -> None:
    if GOOD[:start] + content == GOOD:
        return
    with pytest.raises(CheckpointError):
        CTranslate2(_file(tmp_path, GOOD[:start] + content))
