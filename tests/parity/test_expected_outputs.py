"""The built-in models: real weights give these numbers, a wrong mapping does not."""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import BertModel, LlamaConfig, LlamaForCausalLM

from model.heads import sentence_vector
from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from tests import tiny_gguf
from tests.parity.references import ours, theirs

pytestmark = pytest.mark.weights
Weights = Callable[[str], Path]
SENTENCE = "The animal didn't cross the street because it was too tired."
CAT, KITTEN = "The cat sits on the mat.", "A kitten is resting on a rug."
STOCK, SHARES = "The stock market fell sharply today.", "Shares dropped steeply this afternoon."
RIVER, MONEY = "We sat on the bank of the river.", "I deposited money at the bank."


@pytest.fixture(scope="module")
def minilm(weights: Weights) -> LoadedModel:
    return load_model(weights("minilm"), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def smollm2(weights: Weights) -> LoadedModel:
    return load_model(weights("smollm2"), device="cpu", dtype="float32")


def _ids(loaded: LoadedModel, text: str) -> list[int]:
    assert loaded.encoder is not None
    return loaded.encoder.encode(text).ids


def _next(loaded: LoadedModel, text: str, count: int) -> list[tuple[str, float]]:
    ids = _ids(loaded, text)
    trace = loaded.transformer.trace(Inputs.of(ids), logit_positions=[len(ids) - 1])
    assert trace.logits is not None
    best = trace.logits[0].softmax(-1).topk(count)
    assert loaded.encoder is not None
    return [
        (loaded.encoder.label(index), p)
        for index, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def test_smollm2_knows_the_capital_of_france(smollm2: LoadedModel) -> None:
    found = _next(smollm2, "The capital of France is", 5)
    assert [word.strip() for word, _ in found] == ["Paris", "the", "London", "Le", "New"]
    assert [round(p, 3) for _, p in found] == [0.773, 0.065, 0.012, 0.010, 0.009]


def test_smollm2_makes_the_verb_agree(smollm2: LoadedModel) -> None:
    [(word, p)] = _next(smollm2, "The keys to the cabinet", 1)
    assert (word.strip(), round(p, 3)) == ("are", 0.159)


@pytest.mark.parametrize(("name", "heads"), [("minilm", 6 * 12), ("smollm2", 30 * 9)])
def test_every_row_of_every_head_is_a_distribution(
    name: str, heads: int, request: pytest.FixtureRequest
) -> None:
    loaded = request.getfixturevalue(name)
    weights = ours(loaded, _ids(loaded, SENTENCE)).attention.flatten(0, 1)
    assert len(weights) == heads
    assert (weights >= 0).all()
    assert (weights.sum(-1) - 1).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("a", "b", "similarity"),
    [(CAT, KITTEN, 0.64), (STOCK, SHARES, 0.63), (CAT, STOCK, 0.09), (RIVER, MONEY, 0.41)],
)
def test_minilm_places_sentences(
    weights: Weights, minilm: LoadedModel, a: str, b: str, similarity: float
) -> None:
    found = [sentence_vector(ours(minilm, _ids(minilm, text)).final) for text in (a, b)]
    assert float(found[0] @ found[1]) == pytest.approx(similarity, abs=0.01)
    reference = BertModel.from_pretrained(weights("minilm"), local_files_only=True).eval()
    for text, vector in zip((a, b), found, strict=True):
        with torch.no_grad():
            hidden = reference(torch.tensor([_ids(minilm, text)])).last_hidden_state[0]
        torch.testing.assert_close(vector, F.normalize(hidden.mean(0), dim=0), atol=1e-5, rtol=0)


def test_minilm_agrees_layer_by_layer(weights: Weights, minilm: LoadedModel) -> None:
    reference = BertModel.from_pretrained(
        weights("minilm"), attn_implementation="eager", local_files_only=True
    )
    ids = _ids(minilm, SENTENCE)
    ours(minilm, ids).assert_near(theirs(reference.eval(), ids), 1e-5)


def test_smollm2_agrees_layer_by_layer(weights: Weights, smollm2: LoadedModel) -> None:
    ids = _ids(smollm2, SENTENCE)
    ours(smollm2, ids).assert_near(theirs(_llama_of(weights("smollm2")), ids), 1e-5)


def _llama_of(file: Path) -> LlamaForCausalLM:
    """The GGUF file in `transformers`' LLaMA, read here without any code of ours."""
    reader = gguf.GGUFReader(file)
    config = LlamaConfig(
        **{
            name: reader.fields[f"llama.{key}"].contents()
            for key, name in tiny_gguf.METADATA.items()
            if key in _STATED
        },
        rms_norm_eps=reader.fields["llama.attention.layer_norm_rms_epsilon"].contents(),
        rope_theta=reader.fields["llama.rope.freq_base"].contents(),
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    back = {tiny_gguf.rename(name): name for name in model.state_dict()}
    state = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(np.array(gguf.dequantize(tensor.data, tensor.tensor_type), np.float32))
        part = tensor.name.split(".")[-2]
        if part in heads:
            halves = values.reshape(heads[part], -1, 2, values.shape[-1]).transpose(1, 2)
            values = halves.reshape(values.shape)
        state[back[tensor.name]] = values
    model.load_state_dict(state | {"lm_head.weight": state["model.embed_tokens.weight"]}, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.eval()


_STATED = (
    "embedding_length",
    "block_count",
    "attention.head_count",
    "attention.head_count_kv",
    "feed_forward_length",
    "context_length",
    "vocab_size",
)
