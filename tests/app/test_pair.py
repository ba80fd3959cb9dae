import math

import numpy as np
import pytest

from app.services.pair import pair
from app.services.trace_store import Entry
from model.loading import LoadedModel
from tests import tiny_models
from tests.serving import BERT, LLAMA, TEXT, app_of, trace, weights

SITES = [
    (BERT, "encoder.self.1", 3, 4, 2),
    (BERT, "encoder.self.0", 0, 0, 0),
    (LLAMA, "decoder.self.2", 5, 6, 1),
]


def ask(client, opened, site, head, query, key):
    return client.get(f"/api/traces/{opened['id']}/pair/{site}/{head}?query={query}&key={key}")


@pytest.mark.parametrize(("model", "site", "head", "query", "key"), SITES)
@pytest.mark.parametrize("plan", [[], [{"kind": "set_scale", "rule": "none", "times": -0.5}]])
def test_the_numbers_add_up(client, model, site, head, query, key, plan):
    opened = trace(client, model=model, text=TEXT, plan=plan)
    answer = ask(client, opened, site, head, query, key)
    pair = answer.json()
    described = next(one for one in opened["sites"] if one["site"] == site)
    assert (pair["site"], pair["head"]) == (site, head)
    assert (pair["query"]["index"], pair["key"]["index"]) == (query, key)
    assert len(pair["q"]) == len(pair["k"]) == len(pair["v"]) == described["d_k"]
    assert pair["products"] == pytest.approx(np.multiply(pair["q"], pair["k"]).tolist(), rel=1e-6)
    assert pair["dot"] == pytest.approx(math.fsum(pair["products"]), rel=1e-4, abs=1e-4)
    assert pair["scale"] == pytest.approx(-0.5 if plan else 1 / math.sqrt(described["d_k"]))
    assert pair["scale_words"] == ("-0.5" if plan else f"1/√{described['d_k']}")
    assert pair["scaled"] == pytest.approx(pair["dot"] * pair["scale"], rel=1e-6)
    assert pair["bias"] == 0
    assert pair["softcap"] is None
    assert pair["mask"] == "open"
    assert pair["score"] == pytest.approx(pair["scaled"] + pair["bias"])
    row = weights(client, opened, site, head, stage="masked")[query].astype(float)
    assert pair["row_max"] == pytest.approx(row.max())
    assert pair["row_sum_exp"] == pytest.approx(np.exp(row - row.max()).sum(), rel=1e-5)
    assert pair["weight"] == pytest.approx(
        math.exp(pair["score"] - pair["row_max"]) / pair["row_sum_exp"], rel=1e-4, abs=1e-7
    )
    assert pair["weight"] == pytest.approx(
        weights(client, opened, site, head)[query, key], rel=1e-5, abs=1e-7
    )
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"


@pytest.mark.parametrize(("model", "site", "head", "query", "key"), SITES)
def test_the_contribution_is_the_weighted_value_through_the_heads_slice_of_w_o(
    client, model, site, head, query, key
):
    opened = trace(client, model=model, text=TEXT)
    pair = ask(client, opened, site, head, query, key).json()
    loaded = app_of(client).state.services.engine().entry(opened["id"]).loaded
    w_o = (
        loaded.transformer.get_parameter(f"stack.blocks.{site[-1]}.attention.o.weight").double().numpy()
    )  # [D, HK]
    width = len(pair["v"])
    added = pair["weight"] * w_o[:, head * width : (head + 1) * width] @ np.array(pair["v"])
    assert pair["contribution_norm"] == pytest.approx(np.linalg.norm(added), rel=1e-5, abs=1e-9)


def test_a_query_head_reads_the_key_head_of_its_group(client):
    opened = trace(client, model=LLAMA, text=TEXT)
    pairs = [ask(client, opened, "decoder.self.1", head, 5, 2).json() for head in range(6)]
    assert pairs[0]["k"] == pairs[2]["k"] != pairs[3]["k"] == pairs[5]["k"]
    assert pairs[0]["v"] == pairs[2]["v"] != pairs[3]["v"]
    assert pairs[0]["q"] != pairs[1]["q"]


def test_a_closed_pair_has_no_score_and_no_weight(client):
    opened = trace(client, model=LLAMA, text=TEXT)
    pair = ask(client, opened, "decoder.self.0", 1, 2, 5).json()
    assert pair["mask"] == "closed"
    assert pair["score"] is None
    assert pair["weight"] == 0
    assert pair["contribution_norm"] == 0
    assert pair["scaled"] == pytest.approx(pair["dot"] / math.sqrt(14), rel=1e-6)


def test_a_blocked_pair_is_closed_and_the_others_share_its_weight(client):
    plan = [{"kind": "block", "query": 4, "key": 2}]
    opened = trace(client, text=TEXT, plan=plan)
    pair = ask(client, opened, "encoder.self.0", 0, 4, 2).json()
    assert (pair["mask"], pair["score"], pair["weight"]) == ("closed", None, 0)
    row = weights(client, opened, "encoder.self.0", 0)[4]
    assert row[2] == 0
    assert row.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (BERT, "none: positions were added to the embeddings"),
        (LLAMA, "none: positions are rotated into q and k"),
    ],
)
def test_where_the_positions_are_is_said(client, model, words):
    opened = trace(client, model=model, text=TEXT)
    assert ask(client, opened, opened["sites"][0]["site"], 0, 1, 1).json()["bias_words"] == words


def test_a_pair_is_named_by_its_tokens(client):
    opened = trace(client, text=TEXT)
    pair = ask(client, opened, "encoder.self.0", 0, 1, 2).json()
    assert pair["query"] == {"index": 1, "text": "the"}
    assert pair["key"] == {"index": 2, "text": "animal"}


WORDS = {
    "encoder, learned, post-norm": "none: positions were added to the embeddings",
    "encoder, sinusoids, shared layers": "none: positions were added to the embeddings",
    "decoder, rotary, grouped": "none: positions are rotated into q and k",
    "decoder, ALiBi, scale by layer": "ALiBi: −slope × distance",
    "decoder, no positions": "none: this model has no positions",
    "decoder, norms on both sides, soft-cap, windows": "none: positions are rotated into q and k",
    "encoder–decoder, relative": "a trained bias for this head and distance",
}


@pytest.mark.parametrize("name", WORDS)
def test_every_step_from_dot_to_weight_adds_up_in_every_kind_of_model(name):
    entry = _entry(name)
    for site in entry.trace.sites.values():
        found = pair(entry, site, 2, 7, 6)
        capped = found["scaled"]
        if found["softcap"] is not None:
            capped = found["softcap"] * math.tanh(found["scaled"] / found["softcap"])
        assert found["score"] == pytest.approx(capped + found["bias"])
        weight = math.exp(found["score"] - found["row_max"]) / found["row_sum_exp"]
        assert found["weight"] == pytest.approx(weight)
        cross = ".cross." in site.site
        assert found["bias_words"].startswith("none: cross-attention" if cross else WORDS[name])
        assert (found["bias"] == 0) == (cross or WORDS[name].startswith("none"))
    if name.endswith("windows"):
        assert found["softcap"] == 3.0


def test_alibi_adds_minus_slope_times_distance():
    entry = _entry("decoder, ALiBi, scale by layer")
    site = entry.trace.sites["decoder.self.1"]
    found = [pair(entry, site, head, 8, 3)["bias"] for head in range(4)]
    assert found == pytest.approx([-5 * 2.0**-n for n in (2, 4, 6, 8)])
    assert pair(entry, site, 0, 8, 3)["scale"] == pytest.approx(6**-0.5 / 2)


def _entry(name):
    model = tiny_models.build(name)
    ran = tiny_models.trace(model)
    loaded = LoadedModel(model, None, "tiny", "cpu", "float64", ())
    source = () if ran.memory is None else tuple(map(str, range(len(ran.memory))))
    return Entry("0", "tiny", loaded, ran, tuple(map(str, range(ran.tokens))), source, 0.0)


GIVEN = [[0.0] * 9, *([[0.25] * 4 + [0.0] * 5] * 8)]


@pytest.mark.parametrize(
    ("step", "words", "weight"),
    [
        ({"kind": "set_attention", "weights": GIVEN}, "given by hand", 0.25),
        ({"kind": "ablate_head", "mode": "uniform"}, "the same for every open key", 0.2),
    ],
)
def test_a_weight_that_the_plan_sets_is_named(client, step, words, weight):
    plan = [
        {"kind": "set_mask", "rule": {"name": "causal"}},
        step | {"heads": [3], "sites": "encoder.self.1"},
    ]
    opened = trace(client, text=None, ids=list(range(5, 14)), plan=plan)
    pair = ask(client, opened, "encoder.self.1", 3, 4, 2).json()
    assert (pair["weight_words"], pair["weight"]) == (words, pytest.approx(weight))
    assert ask(client, opened, "encoder.self.1", 2, 4, 2).json()["weight_words"] is None
    told = [notice for notice in opened["notices"] if "does not apply" in notice]
    assert len(told) == (step["kind"] == "set_attention")
