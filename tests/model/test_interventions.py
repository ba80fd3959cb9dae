import copy
import itertools
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from model.config import StackConfig
from model.errors import PlanError
from model.inputs import Inputs
from model.loading import LoadedModel
from model.plan import Plan
from tests import tiny

TOKENS = 11
INPUTS = Inputs.of(tiny.ids(TOKENS))
FIRST = "encoder.self.0"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny.bert(tmp_path_factory.mktemp("bert") / "b")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny.llama(tmp_path_factory.mktemp("llama") / "l")


@pytest.fixture(scope="module")
def stack(bert: LoadedModel) -> StackConfig:
    return bert.config.stack


def _weights(loaded: LoadedModel, plan: object, layer: int = 0) -> Tensor:
    trace = loaded.transformer.trace(INPUTS, Plan.parse(plan))
    site = trace.sites[loaded.config.stack.sites[layer]]
    return site.attention(site.all_heads, range(TOKENS))


def _mask(**rule: object) -> dict[str, object]:
    return {"kind": "set_mask", "rule": rule}


HEADS = st.one_of(st.none(), st.lists(st.integers(0, 4), min_size=1, unique=True))
SITES = st.sampled_from([None, "encoder.self.*", "*", "encoder.self.1", "encoder.self.[02]"])
RULES = st.one_of(
    st.sampled_from(["bidirectional", "causal", "anticausal"]).map(lambda name: {"name": name}),
    st.builds(
        lambda left, right: {"name": "window", "left": left, "right": right},
        st.integers(0, 20),
        st.integers(0, 20),
    ),
    st.builds(lambda length: {"name": "prefix", "length": length}, st.integers(0, TOKENS)),
)
WHERE = {"sites": SITES, "heads": HEADS}
STEPS = st.one_of(
    st.fixed_dictionaries({"kind": st.just("set_mask"), "rule": RULES, **WHERE}),
    st.fixed_dictionaries(
        {
            "kind": st.just("block"),
            "query": st.integers(0, TOKENS - 1),
            "key": st.integers(0, TOKENS - 1),
            **WHERE,
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("set_scale"),
            "rule": st.sampled_from(["own", "none", "inv_sqrt", "inv"]),
            "times": st.sampled_from([1, 1.0, 2.0, -0.5, 0.0]),
            **WHERE,
        }
    ),
)


@settings(max_examples=40)
@given(st.integers(0, TOKENS - 1), st.integers(0, TOKENS - 1), st.integers(0, 4))
def test_a_blocked_pair_is_closed_and_its_row_shares_it_out(
    bert: LoadedModel, query: int, key: int, head: int
) -> None:
    own = _weights(bert, [])
    blocked = _weights(bert, [{"kind": "block", "query": query, "key": key, "heads": [head], "sites": FIRST}])
    expected = own.clone()
    expected[head, query] /= 1 - own[head, query, key]
    expected[head, query, key] = 0
    assert blocked[head, query, key] == 0
    if own[head, query, key] < 0.99:
        torch.testing.assert_close(blocked, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_window_closes_what_lies_outside(llama: LoadedModel, layer: int) -> None:
    weights = _weights(llama, [_mask(name="window", left=3, right=2)], layer)
    distance = torch.arange(TOKENS)[None] - torch.arange(TOKENS)[:, None]
    outside = (distance < -3) | (distance > 2)
    assert (weights[:, outside] == 0).all()
    assert (weights[:, ~outside] > 0).all()
    assert (weights.sum(-1) - 1).abs().max() < 1e-6


def _scaled_queries(loaded: LoadedModel, factor: float, layers: list[int], heads: list[int]) -> LoadedModel:
    changed = copy.deepcopy(loaded)
    width = loaded.config.stack.attention.head_width
    for layer, head in itertools.product(layers, heads):
        q = changed.transformer.stack.blocks[layer].attention.q
        for parameter in q.parameters():
            parameter[head * width : (head + 1) * width] *= factor
    return changed


@pytest.fixture(scope="module", params=["bert", "llama"])
def exact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    build = tiny.bert if request.param == "bert" else tiny.llama
    return build(tmp_path_factory.mktemp("exact") / "model", dtype="float64")


@pytest.mark.parametrize("factor", [3.0, 0.5, -1.0, 0.0])
@pytest.mark.parametrize(("layers", "heads"), [([0], [2]), ([0, 1, 2], None), ([1, 2], [0, 3])])
def test_times_f_is_queries_times_f(
    exact: LoadedModel, factor: float, layers: list[int], heads: list[int] | None
) -> None:
    sites = "*.[" + "".join(map(str, layers)) + "]"
    plan = [{"kind": "set_scale", "times": factor, "heads": heads, "sites": sites}]
    every = list(range(exact.config.stack.attention.heads))
    changed = _scaled_queries(exact, factor, layers, every if heads is None else heads)
    result = tiny.resid(exact, INPUTS, plan)
    assert (result - tiny.resid(changed, INPUTS)).abs().max() <= 1e-10
    assert (result - tiny.resid(exact, INPUTS))[-1].abs().max() > 1e-2


@pytest.mark.parametrize(
    ("rule", "scale"), [("own", 12**-0.5), ("none", 1.0), ("inv_sqrt", 12**-0.5), ("inv", 1 / 12)]
)
def test_scale_rules(bert: LoadedModel, rule: str, scale: float) -> None:
    rules = Plan.parse([{"kind": "set_scale", "rule": rule, "times": 2, "heads": [3]}]).score_rules(
        bert.config.stack, 4
    )
    assert all(
        site.scales == tuple(scale * 2 if head == 3 else 12**-0.5 for head in range(5))
        for site in rules.values()
    )


def _refusal(use: Callable[[], object]) -> str | None:
    try:
        use()
    except PlanError as error:
        return error.detail
    return None


@given(st.lists(STEPS, max_size=4))
def test_the_canonical_plan_is_the_same_plan(stack: StackConfig, steps: list[dict[str, object]]) -> None:
    plan = Plan.parse(steps)
    refusals = [
        _refusal(use) for use in (lambda: plan.score_rules(stack, TOKENS), lambda: plan.canonical(stack))
    ]
    assert refusals[0] == refusals[1]
    if refusals[0] is not None:
        return
    rules = plan.score_rules(stack, TOKENS)
    canonical = plan.canonical(stack)
    assert canonical.score_rules(stack, TOKENS) == rules
    assert canonical.canonical(stack) == canonical
    assert Plan.parse(json.loads(json.dumps(canonical.as_json()))) == canonical
    assert all(list(step) == sorted(step) for step in canonical.as_json())
    for order in itertools.permutations(steps):
        assert Plan.parse(list(order)).canonical(stack) == canonical


@pytest.mark.parametrize(
    "step",
    [
        _mask(name="bidirectional"),
        {"kind": "set_scale"},
        {"kind": "set_scale", "times": 1},
        {"kind": "set_scale", "rule": "inv_sqrt"},
        {"kind": "block", "query": 1, "key": 2, "heads": []},
        _mask(name="causal") | {"heads": []},
    ],
)
def test_what_changes_nothing_is_dropped(stack: StackConfig, step: dict[str, object]) -> None:
    assert Plan.parse([step]).canonical(stack) == Plan()


def test_inv_sqrt_is_the_own_scale_to_the_last_bit(stack: StackConfig) -> None:
    plan = Plan.parse([{"kind": "set_scale", "rule": "inv_sqrt"}])
    for width in range(1, 257):
        attention = replace(stack.attention, head_width=width, scale=width**-0.5)
        assert plan.canonical(replace(stack, attention=attention)) == Plan(), width


def test_all_heads_and_all_sites_have_one_spelling(stack: StackConfig) -> None:
    spelled = {"heads": [4, 0, 2, 1, 3, 3], "sites": "encoder.*"}
    assert Plan.parse([_mask(name="causal") | spelled]).canonical(stack) == Plan.parse([_mask(name="causal")])


def test_plans_have_words() -> None:
    steps = [
        _mask(name="window", left=4, right=0),
        {"kind": "block", "query": 3, "key": 1, "heads": [2, 5], "sites": "encoder.self.1"},
        {"kind": "set_scale", "rule": "none", "times": 0.5},
    ]
    words = "window 4 back, 0 ahead mask; 3 → 1 blocked in heads 2, 5 at encoder.self.1; no scale × 0.5"
    assert Plan.parse(steps).in_words() == words
    assert Plan().in_words() == "the model's own"


TWICE = [
    [_mask(name="causal"), _mask(name="anticausal")],
    [_mask(name="causal") | {"heads": [1, 2]}, _mask(name="causal") | {"heads": [2, 3], "sites": "*.1"}],
    [{"kind": "set_scale", "times": 2}, {"kind": "set_scale", "rule": "inv", "heads": [0]}],
    [{"kind": "set_scale"}, {"kind": "set_scale", "times": 2}],
    [{"kind": "block", "query": 1, "key": 0}, {"kind": "block", "query": 1, "key": 0, "heads": [4]}],
]


@pytest.mark.parametrize("steps", TWICE)
def test_setting_the_same_thing_twice_is_refused(stack: StackConfig, steps: list[object]) -> None:
    for use in (lambda plan: plan.canonical(stack), lambda plan: plan.score_rules(stack, TOKENS)):
        with pytest.raises(PlanError, match="twice"):
            use(Plan.parse(steps))


UNREADABLE = [
    *("causal", 3, None, {"kind": "block"}, [3], [None], [[]], [{}]),
    [{"kind": "ablate_everything"}],
    [{"kind": "set_mask"}],
    [_mask(name="spiral")],
    [_mask(name="window", left=-1, right=0)],
    [_mask(name="window", left=1)],
    [_mask(name="window", left=True, right=0)],
    [_mask(name="window", left=1.5, right=0)],
    [_mask(name="window", left=2**40, right=0)],
    [_mask(name="prefix", length="5")],
    [_mask(name="causal", left=3)],
    [_mask(name="custom", allow=[[2]])],
    [{"kind": "block", "query": -1, "key": 0}],
    [{"kind": "block", "query": True, "key": 0}],
    [{"kind": "block", "query": 1.0, "key": 0}],
    [{"kind": "block", "query": "1", "key": 0}],
    [{"kind": "block", "query": 1, "key": 0, "colour": "red"}],
    [{"kind": "block", "query": 1, "key": 0, "heads": [True]}],
    [{"kind": "block", "query": 1, "key": 0, "heads": 3}],
    [{"kind": "block", "query": 1, "key": 0, "sites": 3}],
    [{"kind": "set_scale", "times": math.nan}],
    [{"kind": "set_scale", "times": math.inf}],
    [{"kind": "set_scale", "times": 1e7}],
    [{"kind": "set_scale", "times": True}],
    [{"kind": "set_scale", "times": "2"}],
    [{"kind": "set_scale", "times": 10**400}],
    [{"kind": "set_scale", "rule": "sqrt"}],
]


@pytest.mark.parametrize("steps", UNREADABLE, ids=repr)
def test_what_is_no_plan_is_refused_in_one_sentence(steps: object) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse(steps)
    _assert_readable(caught.value.detail)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_is_a_plan_or_refused(steps: object) -> None:
    try:
        Plan.parse(steps)
    except PlanError as error:
        _assert_readable(error.detail)


MISFITS = [
    ([{"kind": "block", "query": TOKENS, "key": 0}], f"query {TOKENS}"),
    ([{"kind": "block", "query": 0, "key": 10**30}], f"tokens 0 to {TOKENS - 1}"),
    ([{"kind": "block", "query": 0, "key": 1, "heads": [5]}], "heads 0 to 4"),
    ([{"kind": "block", "query": 0, "key": 1, "heads": [-1]}], "no head -1"),
    ([_mask(name="causal") | {"sites": "decoder.self.*"}], "decoder.self.*"),
    ([_mask(name="causal") | {"sites": ""}], "encoder.self.0 to encoder.self.2"),
    ([_mask(name="prefix", length=TOKENS + 1)], "longer than the input"),
    ([_mask(name="custom", allow=[[1, 0], [1, 1]])], f"{TOKENS} × {TOKENS}"),
    ([_mask(name="custom", allow=[[1] * TOKENS] * (TOKENS - 1) + [[1]])], f"{TOKENS} × {TOKENS}"),
    ([_mask(name="custom", allow=[])], f"{TOKENS} × {TOKENS}"),
    ([_mask(name="custom", allow=[[i != 4] * TOKENS for i in range(TOKENS)])], "query 4 sees no key"),
    ([{"kind": "block", "query": 6, "key": key} for key in range(TOKENS)], "query 6 sees no key"),
    ([_mask(name="causal"), {"kind": "block", "query": 0, "key": 0, "heads": [3]}], "query 0 sees no key"),
]


@pytest.mark.parametrize(("steps", "words"), MISFITS, ids=[words for _, words in MISFITS])
def test_what_does_not_fit_is_refused_in_one_sentence(
    bert: LoadedModel, steps: list[object], words: str
) -> None:
    with pytest.raises(PlanError) as caught:
        bert.transformer(INPUTS, Plan.parse(steps))
    assert words in caught.value.detail
    _assert_readable(caught.value.detail)


def _assert_readable(sentence: str) -> None:
    assert sentence.endswith(".")
    assert len(sentence) < 400
    jargon = ("Traceback", "Error", "pydantic", "discriminator", " tag", "dict", "tuple", "keyword", "\n")
    assert not any(word in sentence for word in jargon)


PLANS: list[list[dict[str, object]]] = [
    [],
    [_mask(name="causal")],
    [{"kind": "set_scale", "times": 3.0, "heads": [1]}, {"kind": "block", "query": 5, "key": 2}],
    [_mask(name="window", left=2, right=2) | {"sites": "*.1"}],
]


def test_runs_at_the_same_time_do_not_mix(bert: LoadedModel) -> None:
    def run(number: int) -> Tensor:
        return tiny.resid(bert, INPUTS, PLANS[number % len(PLANS)])

    serial = [run(number) for number in range(len(PLANS))]
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(run, range(40)))
    assert all(torch.equal(result, serial[number % len(PLANS)]) for number, result in enumerate(results))
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(serial, 2))


def _facts(module: nn.Module) -> dict[str, object]:
    inside = {
        f"{name}.{key}": copy.copy(value) if isinstance(value, dict) else value
        for name, part in module.named_modules()
        for key, value in vars(part).items()
    }
    return inside | {name: tensor.clone() for name, tensor in module.state_dict().items()}


@pytest.mark.parametrize("steps", PLANS[1:])
def test_nothing_stays_on_the_model(bert: LoadedModel, steps: list[dict[str, object]]) -> None:
    own, before = tiny.resid(bert, INPUTS), _facts(bert.transformer)
    tiny.resid(bert, INPUTS, steps)
    with pytest.raises(PlanError):
        tiny.resid(bert, INPUTS, [*steps, {"kind": "block", "query": 99, "key": 0}])
    after = _facts(bert.transformer)
    assert before.keys() == after.keys()
    for name, value in before.items():
        same = torch.equal(value, after[name]) if isinstance(value, Tensor) else value == after[name]
        assert same, name
    assert torch.equal(tiny.resid(bert, INPUTS), own)
