from pathlib import Path

import pytest
import torch

from model.inputs import Inputs
from model.loading import LoadedModel
from model.plan import Plan
from model.scores import STAGES
from tests import numpy_attention, tiny

N = 15


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny.llama(tmp_path_factory.mktemp("llama") / "l")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny.bert(tmp_path_factory.mktemp("bert") / "b")


@pytest.mark.parametrize("stage", STAGES)
def test_attention_comes_from_what_was_recorded(llama: LoadedModel, stage) -> None:
    plan = [
        {"kind": "set_mask", "rule": {"name": "window", "left": 4, "right": 2}, "heads": [1, 4]},
        {"kind": "set_scale", "rule": "inv", "heads": [4]},
        {"kind": "block", "query": 9, "key": 8},
    ]
    trace = llama.transformer.trace(Inputs.of(tiny.ids(N)), Plan.parse(plan))
    scales = [1 / 14 if head == 4 else 14**-0.5 for head in range(6)]

    def sees(head: int, i: int, j: int) -> bool:
        return (i, j) != (9, 8) and (-4 <= j - i <= 2 if head in (1, 4) else j <= i)

    for site in trace.sites.values():
        q, k = site.q.double().numpy(), site.k.double().numpy()
        views = [lambda i, j, head=head: sees(head, i, j) for head in range(6)]
        expected = torch.from_numpy(numpy_attention.stages(q, k, scales, views)[stage])
        found = site.attention(site.all_heads, range(N), stage)
        torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
        part = site.attention(range(3, 5), range(9, 12), stage, keys=range(4, N))
        if stage != "weights":
            torch.testing.assert_close(part, found[3:5, 9:12, 4:], atol=1e-5, rtol=1e-5)


def test_shapes_and_names(llama: LoadedModel) -> None:
    trace = llama.transformer.trace(Inputs.of(tiny.ids(N)), record=["resid"], logit_positions=[N - 1])
    assert list(trace.sites) == ["decoder.self.0", "decoder.self.1", "decoder.self.2"]
    site = trace.sites["decoder.self.1"]
    assert (site.q.shape, site.k.shape, site.v.shape) == ((6, N, 14), (2, N, 14), (2, N, 14))
    assert (site.heads, site.queries, site.keys, site.all_heads) == (6, N, N, range(6))
    assert [site.key_head(head) for head in range(6)] == [0, 0, 0, 1, 1, 1]
    assert list(trace.resid) == [("decoder", layer) for layer in range(4)]
    assert trace.tokens == N
    assert trace.finite


def test_the_stream_is_kept_only_where_asked_for(bert: LoadedModel) -> None:
    assert bert.transformer.trace(Inputs.of([1, 2, 3])).resid == {}


def test_bytes_are_those_of_the_tensors(bert: LoadedModel, llama: LoadedModel) -> None:
    encoder = bert.transformer.trace(Inputs.of(tiny.ids(N)))
    assert encoder.nbytes == 4 * N * (3 * 3 * 60 + 60)
    decoder = llama.transformer.trace(Inputs.of(tiny.ids(N)), record=["resid"], logit_positions=[0, 1])
    assert decoder.nbytes == 4 * (N * (3 * (6 + 2 + 2) * 14 + 4 * 60 + 60) + 2 * 89)
    kept = [site.q for site in decoder.sites.values()] + list(decoder.resid.values())
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in kept)


def test_a_half_precision_trace_is_looked_at_in_fp32(tmp_path: Path) -> None:
    trace = tiny.llama(tmp_path, dtype="bfloat16").transformer.trace(Inputs.of(tiny.ids(N)))
    site = trace.sites["decoder.self.0"]
    assert site.q.dtype == torch.bfloat16
    weights = site.attention(site.all_heads, range(N))
    assert weights.dtype == torch.float32
    assert (weights.sum(-1) - 1).abs().max() < 1e-6


def test_numbers_that_are_not_finite_are_noticed(tmp_path: Path) -> None:
    loaded = tiny.bert(tmp_path)
    loaded.transformer.embeddings.tokens.weight[5] = torch.inf
    assert not loaded.transformer.trace(Inputs.of([1, 5])).finite
    assert loaded.transformer.trace(Inputs.of([1, 4])).finite
