"""Attention under every mask against `transformers`, which takes a mask as a table added to the scores."""

from collections.abc import Callable

import pytest
import torch
from transformers import BertModel, LlamaForCausalLM

from model.loading import load_model
from model.plan import Plan
from tests import tiny
from tests.parity.references import load, ours, theirs

TOKENS = 17
Sees = Callable[[int, int], bool]
ODD = [[(i * 5 + j * 3) % 4 == 0 or i == j for j in range(TOKENS)] for i in range(TOKENS)]
RULES: dict[str, tuple[list[dict[str, object]], Sees]] = {
    "bidirectional": ([{"kind": "set_mask", "rule": {"name": "bidirectional"}}], lambda *_: True),
    "causal": ([{"kind": "set_mask", "rule": {"name": "causal"}}], lambda i, j: j <= i),
    "anticausal": ([{"kind": "set_mask", "rule": {"name": "anticausal"}}], lambda i, j: j >= i),
    "window": (
        [{"kind": "set_mask", "rule": {"name": "window", "left": 4, "right": 1}}],
        lambda i, j: i - 4 <= j <= i + 1,
    ),
    "prefix": ([{"kind": "set_mask", "rule": {"name": "prefix", "length": 5}}], lambda i, j: j <= i or j < 5),
    "custom": ([{"kind": "set_mask", "rule": {"name": "custom", "allow": ODD}}], lambda i, j: ODD[i][j]),
    "blocked": (
        [
            {"kind": "set_mask", "rule": {"name": "bidirectional"}},
            {"kind": "block", "query": 3, "key": 1},
            {"kind": "block", "query": 16, "key": 0},
        ],
        lambda i, j: (i, j) not in {(3, 1), (16, 0)},
    ),
}


@pytest.fixture(scope="module", params=["bert", "llama"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("masks") / "model"
    if request.param == "bert":
        tiny.write(folder, tiny.BERT, tiny.bert_tensors())
        return load_model(folder, device="cpu", dtype="float32"), load(BertModel, folder)
    tiny.write(folder, tiny.LLAMA, tiny.llama_tensors())
    return load_model(folder, device="cpu", dtype="float32"), load(LlamaForCausalLM, folder)


def _added(sees: Sees) -> torch.Tensor:
    return torch.tensor([[0.0 if sees(i, j) else -torch.inf for j in range(TOKENS)] for i in range(TOKENS)])


@pytest.mark.parametrize("name", RULES)
def test_every_layer_agrees_under(pair, name: str) -> None:
    mine, reference = pair
    steps, sees = RULES[name]
    expected = theirs(reference, tiny.ids(TOKENS), attention_mask=_added(sees)[None, None])
    ours(mine, tiny.ids(TOKENS), Plan.parse(steps)).assert_near(expected, 1e-5)


def test_heads_may_have_masks_and_pairs_of_their_own(pair) -> None:
    mine, reference = pair
    heads = mine.config.stack.attention.heads
    table = torch.stack(
        [_added(RULES["anticausal" if head in (1, 3) else "window"][1]) for head in range(heads)]
    )
    table[2, 9, 8] = -torch.inf
    rest = [head for head in range(heads) if head not in (1, 3)]
    steps = [
        {"kind": "set_mask", "rule": {"name": "anticausal"}, "heads": [3, 1]},
        {"kind": "set_mask", "rule": {"name": "window", "left": 4, "right": 1}, "heads": rest},
        {"kind": "block", "query": 9, "key": 8, "heads": [2]},
    ]
    expected = theirs(reference, tiny.ids(TOKENS), attention_mask=table[None])
    ours(mine, tiny.ids(TOKENS), Plan.parse(steps)).assert_near(expected, 1e-5)
