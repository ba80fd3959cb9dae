import json
from pathlib import Path
from typing import Any

import pytest
import torch

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.head_layer import HeadLayer
from model.labs.heads import run
from model.labs.parameters.heads import Heads
from model.labs.reading import Ran, run_ids
from model.labs.result import Chart, Heatmap, Result
from model.labs.subspaces import overlaps
from model.loading import LoadedModel
from model.text import Encoded
from tests import tiny


def layer(loaded: LoadedModel, index: int = 1, count: int = 9) -> HeadLayer:
    encoded = Encoded(tiny.ids(count), [0] * count, [], [])
    return HeadLayer(Ran(loaded, encoded, run_ids(loaded, encoded, record=("head_out", "attn_out"))), index)


def by_id(result: Result) -> dict[str, Chart | Heatmap]:
    return {one.id: one for one in result.series}


@pytest.fixture(scope="module", params=["bert", "llama"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    path: Path = tmp_path_factory.mktemp(request.param) / "m"
    made: LoadedModel = getattr(tiny, request.param)(path)
    return made


@torch.inference_mode()
def test_the_sum_of_heads_is_the_layers_output(loaded: LoadedModel) -> None:
    found = layer(loaded)
    assert found.difference() < 1e-4
    # Without any one head it is not: each adds something.
    for head in range(len(found.contributions)):
        others = found.contributions.sum(dim=0) - found.contributions[head]
        assert (found.written(others) - found.out).abs().max() > 0.01


@torch.inference_mode()
def test_a_contribution_is_pattern_times_values_times_a_slice(loaded: LoadedModel) -> None:
    found = layer(loaded)
    site = found.ran.trace.sites[found.site]
    width = found.attention.config.head_width
    for head in range(site.heads):
        values = site.v[head // (site.heads // len(site.v))].double()
        pattern = site.attention(range(head, head + 1), range(site.queries))[0].double()
        columns = found.attention.o.weight[:, head * width : (head + 1) * width].double()
        expected = pattern @ values @ columns.T
        torch.testing.assert_close(found.contributions[head].double(), expected, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_one_shared_pattern_changes_nothing_where_all_patterns_are_one(loaded: LoadedModel) -> None:
    encoded = Encoded(tiny.ids(9), [0] * 9, [], [])
    off = [{"kind": "set_scale", "rule": "own", "times": 0.0}]
    trace = run_ids(loaded, encoded, off, ("head_out", "attn_out"))
    assert HeadLayer(Ran(loaded, encoded, trace), 1).missing(
        HeadLayer(Ran(loaded, encoded, trace), 1).with_one_pattern()
    ) == pytest.approx(0, abs=1e-5)
    own = layer(loaded)
    assert own.missing(own.with_one_pattern()) > 0.05


def test_overlaps_of_known_subspaces() -> None:
    axes = torch.eye(6)
    plane, other, half = axes[:, :2], axes[:, 2:4], axes[:, 1:3]
    found = overlaps(torch.stack([plane, other, half, plane @ torch.tensor([[3.0, 1.0], [0.0, -2.0]])]))
    expected = torch.tensor([[1, 0, 0.5, 1], [0, 1, 0.5, 0], [0.5, 0.5, 1, 0.5], [1, 0, 0.5, 1]])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_random_subspaces_overlap_by_their_share_of_the_width() -> None:
    torch.manual_seed(0)
    found = overlaps(torch.randn(40, 60, 12))
    others = found[~torch.eye(40, dtype=torch.bool)]
    assert others.mean().item() == pytest.approx(12 / 60, abs=0.003)


def test_subspaces_wider_than_the_model_fill_it() -> None:
    assert overlaps(torch.randn(2, 4, 9)).allclose(torch.ones(2, 2), atol=1e-5)


@pytest.mark.weights
@pytest.mark.parametrize(
    ("model", "width", "heads", "inner"), [("minilm", 384, 12, 32), ("smollm2", 576, 9, 64)]
)
def test_on_a_real_model(real_bench: Bench, model: str, width: int, heads: int, inner: int) -> None:
    result = run(Heads(model=model, layer=2, head=4), real_bench)
    assert all(check.holds for check in result.checks)
    assert {check.about for check in result.checks} == {
        "rebuilt", "pattern", "lengths", "all-lengths", "overlap", "overlap-mean"
    }  # fmt: skip
    assert 0 < result.checks[0].measured < 1e-4
    facts = result.facts
    assert (facts["width"], facts["heads"], facts["head_width"]) == (width, heads, inner)
    rebuilt = by_id(result)["rebuilt"]
    assert isinstance(rebuilt, Chart)
    missing = rebuilt.lines[0].y
    assert len(missing) == heads + 1
    assert missing[-1] < 1e-4 < missing[-2]
    lengths, pattern = by_id(result)["all-lengths"], by_id(result)["pattern"]
    assert isinstance(lengths, Heatmap)
    assert isinstance(pattern, Heatmap)
    assert lengths.values.shape[1] == heads
    assert pattern.values.sum(dim=1).allclose(torch.ones(len(pattern.values)), atol=1e-5)
    json.dumps(result.as_json(), allow_nan=False)


@pytest.mark.weights
def test_keys_are_shared_by_groups(real_bench: Bench) -> None:
    for projection, count in (("queries", 9), ("keys", 3), ("values", 3), ("output", 9)):
        overlap = by_id(run(Heads(model="smollm2", projection=projection), real_bench))["overlap"]
        assert isinstance(overlap, Heatmap)
        assert overlap.values.shape == (count, count)
        assert overlap.values.diagonal().allclose(torch.ones(count), atol=1e-4)


@pytest.mark.weights
@pytest.mark.parametrize("asked", [{"layer": 6}, {"head": 12}, {"text": "word " * 200}])
def test_what_is_not_there_is_refused(real_bench: Bench, asked: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"choose one from 0 to|shorten it"):
        run(Heads.model_validate(asked), real_bench)


@pytest.mark.weights
def test_long_texts_get_smaller_pictures_and_say_so(real_bench: Bench) -> None:
    result = run(Heads(text="word " * 60), real_bench)
    pictures = result.facts["thumbnails"]
    assert isinstance(pictures, list)
    assert (len(pictures), len(pictures[0]), len(pictures[0][0])) == (12, 24, 24)
    assert any("24 × 24" in note for note in result.notes)
    assert not run(Heads(text="two words"), real_bench).notes


def failed(result: Result) -> set[str | None]:
    return {check.about for check in result.checks if not check.holds}


@pytest.mark.weights
def test_checks_see_what_is_wrong(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(run(Heads(), real_bench)) == set()
    ones = "model.labs.{}.overlaps"
    with monkeypatch.context() as patch:
        for module in ("heads", "head_checks"):
            patch.setattr(ones.format(module), lambda columns: torch.ones(len(columns), len(columns)))
        assert failed(run(Heads(), real_bench)) == {"overlap", "overlap-mean"}
    with monkeypatch.context() as patch:
        own = HeadLayer.__dict__["contributions"].func
        patch.setattr(HeadLayer, "contributions", property(lambda layer: own(layer).flip(0)))
        assert failed(run(Heads(), real_bench)) == {"lengths", "all-lengths"}
    with monkeypatch.context() as patch:
        seen = HeadLayer.__dict__["patterns"].func
        patch.setattr(HeadLayer, "patterns", property(lambda layer: seen(layer).flip(0)))
        assert failed(run(Heads(), real_bench)) == {"pattern"}


@pytest.mark.weights
def test_the_last_layer_and_one_token_are_told(real_bench: Bench) -> None:
    facts: dict[str, Any] = dict(run(Heads(model="smollm2", text="x", layer=29), real_bench).facts)
    assert (facts["one_pattern"]["differ"], facts["later"]) == (False, False)
    facts = dict(run(Heads(), real_bench).facts)
    assert (facts["one_pattern"]["differ"], facts["later"]) == (True, True)
