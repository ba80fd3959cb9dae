from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from model.ffn import POSITIONS
from model.inputs import Inputs
from model.loading import LoadedModel
from model.plan import Plan
from tests import tiny

N = 24


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny.bert(tmp_path_factory.mktemp("bert") / "b", masked=True)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny.llama(tmp_path_factory.mktemp("llama") / "l")


def _mask(**rule: object) -> list[dict[str, object]]:
    return [{"kind": "set_mask", "rule": rule}]


def _moved(loaded: LoadedModel, plan: object, changed: range) -> Tensor:
    """How far each position of each layer moves, [L + 1, T], when the tokens at `changed` become others."""
    ids = tiny.ids(N)
    others = [(token + 7) % 89 if place in changed else token for place, token in enumerate(ids)]
    runs = [tiny.resid(loaded, Inputs.of(tokens), plan) for tokens in (ids, others)]
    return (runs[0] - runs[1]).abs().amax(-1)


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("first", [1, 8, N - 1])
def test_under_a_causal_mask_nothing_depends_on_later_tokens(
    family: str, first: int, request: pytest.FixtureRequest
) -> None:
    moved = _moved(request.getfixturevalue(family), _mask(name="causal"), range(first, N))
    assert moved[:, :first].max() <= 1e-6
    assert moved[:, first:].min() > 1e-3


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_under_a_bidirectional_mask_everything_depends_on_later_tokens(
    family: str, request: pytest.FixtureRequest
) -> None:
    moved = _moved(request.getfixturevalue(family), _mask(name="bidirectional"), range(N - 1, N))
    assert moved[0, :-1].max() == 0
    assert moved[-1].min() > 1e-3


def test_under_an_anticausal_mask_nothing_depends_on_earlier_tokens(bert: LoadedModel) -> None:
    moved = _moved(bert, _mask(name="anticausal"), range(8))
    assert moved[:, 8:].max() <= 1e-6
    assert moved[:, :8].min() > 1e-3


def test_under_a_window_influence_travels_one_window_a_layer(llama: LoadedModel) -> None:
    moved = _moved(llama, _mask(name="window", left=2, right=1), range(10, 11))
    for layer, row in enumerate(moved):
        reached = [place for place, distance in enumerate(row.tolist()) if distance > 1e-5]
        assert reached == list(range(10 - layer, 10 + 2 * layer + 1))


def test_a_prefix_sees_itself_and_nothing_later(bert: LoadedModel) -> None:
    plan = _mask(name="prefix", length=6)
    assert _moved(bert, plan, range(6, N))[:, :6].max() <= 1e-6
    assert _moved(bert, plan, range(5, 6))[-1].min() > 1e-3


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize(
    "plan",
    [
        [],
        _mask(name="causal"),
        _mask(name="bidirectional"),
        _mask(name="window", left=3, right=1),
        [
            {"kind": "set_scale", "times": 1.5, "heads": [1]},
            {"kind": "block", "query": 9, "key": 4, "heads": [0, 2]},
        ],
    ],
)
def test_fused_and_explicit_forwards_agree(family: str, plan: object, request: pytest.FixtureRequest) -> None:
    loaded = request.getfixturevalue(family)
    inputs, parsed = Inputs.of(tiny.ids(N)), Plan.parse(plan)
    fused, explicit = (loaded.transformer(inputs, parsed, fused=fused) for fused in (True, False))
    assert (fused - explicit).abs().max() <= 1e-5 * max(1.0, explicit.abs().max().item())


@pytest.fixture(scope="module", params=["bert", "llama"])
def exact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A model in fp64, where what is wrong stands out from what is rounded."""
    build = tiny.bert if request.param == "bert" else tiny.llama
    return build(tmp_path_factory.mktemp("exact") / "model", dtype="float64")


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("fused", [True, False], ids=["fused", "explicit"])
@pytest.mark.parametrize("plan", [[], _mask(name="causal"), _mask(name="window", left=4, right=4)])
def test_a_padded_batch_equals_single_runs(exact: LoadedModel, left: bool, fused: bool, plan: object) -> None:
    texts = [tiny.ids(length, seed=length) for length in (N, 11, 1)]
    real = torch.zeros(3, N, dtype=torch.bool)
    ids = torch.zeros(3, N, dtype=torch.long)
    for row, text in enumerate(texts):
        place = slice(N - len(text), N) if left else slice(0, len(text))
        real[row, place], ids[row, place] = True, torch.tensor(text)
    batch = exact.transformer(Inputs(ids, real=real), Plan.parse(plan), fused=fused)
    assert batch.isfinite().all()
    for row, text in enumerate(texts):
        single = exact.transformer(Inputs.of(text), Plan.parse(plan), fused=fused)[0]
        assert (batch[row, real[row]] - single).abs().max() <= 1e-10


class Largest(TorchDispatchMode):
    """Keeps the number of elements of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        made = [
            part
            for part in (result if isinstance(result, tuple | list) else [result])
            if isinstance(part, Tensor)
        ]
        self.elements = max(self.elements, *(part.numel() for part in made), 0)
        return result


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedModel]:
    folder = tmp_path_factory.mktemp("long")
    sizes = {"max_position_embeddings": 4096, "num_hidden_layers": 1}
    return {"bert": tiny.bert(folder / "b", **sizes), "llama": tiny.llama(folder / "l", **sizes)}


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("plan", [[], _mask(name="causal"), _mask(name="bidirectional")])
def test_no_tensor_of_a_usual_run_grows_with_the_square_of_the_length(
    long: dict[str, LoadedModel], family: str, plan: object
) -> None:
    largest = []
    for length in (2048, 4096):
        with Largest() as seen:
            trace = long[family].transformer.trace(Inputs.of(tiny.ids(length)), Plan.parse(plan), ["resid"])
        largest.append((seen.elements, trace.nbytes))
    assert largest[0][0] < 2048 * 100
    assert largest[1] == (2 * largest[0][0], 2 * largest[0][1])


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_other_masks_are_made_for_some_rows_at_a_time(long: dict[str, LoadedModel], family: str) -> None:
    plan = Plan.parse(
        [*_mask(name="window", left=9, right=9), {"kind": "block", "query": 7, "key": 5, "heads": [1]}]
    )
    with Largest() as seen:
        long[family].transformer.trace(Inputs.of(tiny.ids(4096)), plan)
    assert seen.elements < 4096 * 4096 / 2


def test_the_feed_forward_layer_is_widened_for_some_positions_at_a_time(tmp_path: Path) -> None:
    loaded = tiny.bert(tmp_path, max_position_embeddings=4096, num_hidden_layers=1, intermediate_size=3000)
    with Largest() as seen:
        loaded.transformer(Inputs.of(tiny.ids(2048)))
    assert seen.elements == POSITIONS * 3000


def test_only_the_logits_asked_for_are_made(llama: LoadedModel) -> None:
    ids = tiny.ids(9)
    trace = llama.transformer.trace(Inputs.of(ids), logit_positions=[8, 2])
    every = llama.transformer.logits(llama.transformer(Inputs.of(ids)))[0]
    assert trace.logits is not None
    assert trace.logits.shape == (2, 89)
    torch.testing.assert_close(trace.logits, every[[8, 2]], atol=1e-5, rtol=1e-5)


def test_what_a_trace_cannot_hold_is_refused(tmp_path: Path, llama: LoadedModel) -> None:
    two = Inputs(torch.zeros(2, 4, dtype=torch.long))
    padded = Inputs(torch.zeros(1, 4, dtype=torch.long), real=torch.tensor([[True, True, True, False]]))
    for inputs in (two, padded):
        with pytest.raises(ValueError, match="one unpadded sequence"):
            llama.transformer.trace(inputs)
    without_head = tiny.bert(tmp_path).transformer
    with pytest.raises(ValueError, match="no token logits"):
        without_head.trace(Inputs.of([1, 2]), logit_positions=[0])
