import math

import numpy as np
import pytest
import torch

from app.services import views
from model.rules import Bidirectional, ScoreRule
from model.trace import SiteTrace
from tests.numpy_attention import stages
from tests.serving import (
    BERT,
    CAUSAL,
    LLAMA,
    TEXT,
    all_weights,
    app_of,
    load,
    npy,
    problem,
    serving,
    trace,
    weights,
)
from tests.tiny import ids

WINDOW = [{"kind": "set_mask", "rule": {"name": "window", "left": 3, "right": 1}}]


def pooled(matrix, height, width, reduce):
    """Cell i of n covers floor(iN/n) to ceil((i+1)N/n)."""
    rows, cols = matrix.shape

    def parts(count, cells):
        return [slice(i * count // cells, math.ceil((i + 1) * count / cells)) for i in range(cells)]

    return np.array([[reduce(matrix[r, c]) for c in parts(cols, width)] for r in parts(rows, height)])


def site_trace(client, opened, site):
    return app_of(client).state.services.engine().entry(opened["id"]).trace.sites[site]


@pytest.mark.parametrize(
    ("model", "tokens", "size"),
    [(BERT, 37, 32), (BERT, 37, 10), (BERT, 5, 32), (LLAMA, 40, 16), (LLAMA, 1, 1)],
)
def test_an_overview_is_the_largest_weight_under_each_cell(client, model, tokens, size):
    opened = trace(client, model=model, ids=ids(tokens))
    stack = opened["sites"][0]["stack"]
    answer = client.get(f"/api/traces/{opened['id']}/overview/{stack}.self", params={"size": size})
    picture = npy(answer)
    heads, side = opened["sizes"]["heads"], min(size, tokens)
    assert picture.dtype == np.uint8
    assert picture.shape == (3, heads, side, side)
    for layer, matrices in enumerate(all_weights(client, opened)):
        for head, matrix in enumerate(matrices):
            expected = 255 * pooled(matrix, side, side, np.max)
            assert np.abs(picture[layer, head] - expected).max() <= 0.5 + 1e-3
    assert answer.headers["x-atlas-layers"] == "0:3"
    assert answer.headers["x-atlas-pool"] == ("max" if size < tokens else "none")
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"


def test_an_overview_of_some_layers(client):
    opened = trace(client, ids=ids(12))
    address = f"/api/traces/{opened['id']}/overview/encoder.self"
    part = client.get(address, params={"layers": "1:3"})
    assert np.array_equal(npy(part), npy(client.get(address))[1:3])
    assert part.headers["x-atlas-layers"] == "1:3"


def test_layers_keep_their_numbers_where_a_plan_leaves_one_out(client):
    plan = [{"kind": "drop_sublayer", "sublayer": "attention", "sites": "encoder.self.1"}]
    opened = trace(client, ids=ids(12), plan=plan)
    address = f"/api/traces/{opened['id']}"
    whole = client.get(f"{address}/overview/encoder.self")
    assert whole.headers["x-atlas-layers"] == "0:1,2:3"
    last = client.get(f"{address}/overview/encoder.self?layers=2:3")
    assert np.array_equal(npy(last), npy(whole)[1:])
    for path in ("overview/encoder.self?layers=1:2", "heads?layers=0:3"):
        gone = problem(client.get(f"{address}/{path}"), 404, "unknown-site")["detail"]
        assert gone == (
            "Layer 1 has no encoder.self attention in this trace, because its plan left that out: ask for the"
            " layers 0:1,2:3."
        )
    (figures,) = client.get(f"{address}/heads?layers=2:3").json()["sites"]
    assert figures["site"] == "encoder.self.2"
    assert client.get(f"{address}/links/encoder.self?query=1&key=0").json()["layers"] == [0, 2]


@pytest.mark.parametrize("plan", [[], WINDOW])
@pytest.mark.parametrize("block", [1, 50, 37 * 6 * 3])
def test_pictures_do_not_depend_on_the_size_of_a_block(client, monkeypatch, block, plan):
    """A block computes only the keys that its mask shows, so blocks of a window begin at different keys."""
    opened = trace(client, model=LLAMA, ids=ids(37), plan=plan)
    asked = (
        "overview/decoder.self",
        "attention/decoder.self.1/4?max=10",
        "attention/decoder.self.1/4?max=10&pool=mean",
    )
    whole = [npy(client.get(f"/api/traces/{opened['id']}/{path}")) for path in asked]
    figures = client.get(f"/api/traces/{opened['id']}/heads").json()
    monkeypatch.setattr(views, "BLOCK_CELLS", block)
    for path, expected in zip(asked, whole, strict=True):
        found = npy(client.get(f"/api/traces/{opened['id']}/{path}"))
        assert np.allclose(
            found.astype(float), expected.astype(float), atol=1e-6 if found.dtype != np.uint8 else 1
        )
    for one, other in zip(
        client.get(f"/api/traces/{opened['id']}/heads").json()["sites"], figures["sites"], strict=True
    ):
        for a, b in zip(one["heads"], other["heads"], strict=True):
            assert a == pytest.approx(b, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("model", "plan", "sees"),
    [
        (BERT, [], lambda *_: True),
        (BERT, CAUSAL, lambda i, j: j <= i),
        (LLAMA, [], lambda i, j: j <= i),
        (LLAMA, WINDOW, lambda i, j: i - 3 <= j <= i + 1),
    ],
)
def test_every_stage_is_what_the_formula_says(client, model, plan, sees):
    opened = trace(client, model=model, ids=ids(9), plan=plan)
    for described in opened["sites"]:
        site = site_trace(client, opened, described["site"])
        q, k = (tensor.double().numpy() for tensor in (site.q, site.k))
        expected = stages(q, k, [described["scale"]] * site.heads, [sees] * site.heads)
        for stage, matrices in expected.items():
            for head, matrix in enumerate(matrices):
                found = weights(client, opened, described["site"], head, stage=stage)
                assert found.dtype == np.float32
                np.testing.assert_allclose(found, matrix, rtol=1e-4, atol=1e-5)
        mask = weights(client, opened, described["site"], 0, stage="mask")
        assert mask.dtype == np.uint8
        assert mask.tolist() == [[int(sees(i, j)) for j in range(9)] for i in range(9)]


@pytest.mark.parametrize(("pool", "reduce"), [("max", np.max), ("mean", np.mean)])
def test_a_tile_is_the_part_asked_for_pooled_to_the_size_asked_for(client, pool, reduce):
    opened = trace(client, ids=ids(37))
    whole = weights(client, opened, "encoder.self.2", 3)
    asked = {"rows": "3:33", "cols": "10:37", "max": 7, "pool": pool}
    answer = client.get(f"/api/traces/{opened['id']}/attention/encoder.self.2/3", params=asked)
    np.testing.assert_allclose(npy(answer), pooled(whole[3:33, 10:37], 7, 7, reduce), atol=1e-6)
    assert answer.headers["x-atlas-rows"] == "3:33"
    assert answer.headers["x-atlas-cols"] == "10:37"
    assert answer.headers["x-atlas-pool"] == pool
    assert answer.headers["x-atlas-stage"] == "weights"
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"


def test_a_tile_that_fits_is_exact(client):
    opened = trace(client, ids=ids(20))
    whole = weights(client, opened, "encoder.self.0", 0)
    assert whole.shape == (20, 20)
    np.testing.assert_allclose(whole.sum(axis=1), 1, atol=1e-5)
    answer = client.get(f"/api/traces/{opened['id']}/attention/encoder.self.0/0?rows=4:6&cols=0:20&max=20")
    assert answer.headers["x-atlas-pool"] == "none"
    np.testing.assert_allclose(npy(answer), whole[4:6], atol=1e-6)


def test_only_the_side_that_is_too_long_is_pooled(client):
    opened = trace(client, ids=ids(30))
    whole = weights(client, opened, "encoder.self.0", 1)
    part = weights(client, opened, "encoder.self.0", 1, rows="2:5", max=8)
    np.testing.assert_allclose(part, pooled(whole[2:5], 3, 8, np.max), atol=1e-6)


def test_the_mean_of_a_mask_is_the_share_of_open_keys(client):
    opened = trace(client, model=LLAMA, ids=ids(20))
    asked = {"stage": "mask", "max": 3}
    full = weights(client, opened, "decoder.self.0", 0, stage="mask").astype(float)
    largest = weights(client, opened, "decoder.self.0", 0, pool="max", **asked)
    share = weights(client, opened, "decoder.self.0", 0, pool="mean", **asked)
    assert largest.dtype == np.uint8
    assert np.array_equal(largest, pooled(full, 3, 3, np.max))
    np.testing.assert_allclose(share, pooled(full, 3, 3, np.mean), atol=1e-6)


def test_json_says_null_where_a_score_is_closed(client):
    opened = trace(client, model=LLAMA, ids=ids(4))
    address = f"/api/traces/{opened['id']}/attention/decoder.self.0/5"
    answer = client.get(address, params={"stage": "masked", "format": "json", "rows": "1:3"})
    body = answer.json()
    exact = weights(client, opened, "decoder.self.0", 5, stage="masked")
    assert {name: body[name] for name in ("stage", "rows", "cols", "pool")} == {
        "stage": "masked",
        "rows": "1:3",
        "cols": "0:4",
        "pool": "none",
    }
    assert [[value is None for value in row] for row in body["values"]] == [
        [False, False, True, True],
        [False, False, False, True],
    ]
    assert body["values"][1][:3] == pytest.approx(exact[2, :3].tolist())
    assert answer.headers["x-atlas-rows"] == "1:3"


@pytest.mark.parametrize(("model", "tokens"), [(BERT, 30), (LLAMA, 30), (BERT, 2)])
def test_the_figures_of_every_head(client, model, tokens):
    opened = trace(client, model=model, ids=ids(tokens))
    answer = client.get(f"/api/traces/{opened['id']}/heads")
    body = answer.json()
    assert set(body["definitions"]) == {"entropy", "diagonal", "previous", "next", "first", "max"}
    assert [site["site"] for site in body["sites"]] == [site["site"] for site in opened["sites"]]
    for site, matrices in zip(body["sites"], all_weights(client, opened), strict=True):
        for found, w in zip(site["heads"], matrices, strict=True):
            logs = np.log(w, where=w > 0, out=np.zeros_like(w))
            assert found == pytest.approx(
                {
                    "entropy": -(w * logs).sum(axis=1).mean(),
                    "diagonal": np.diagonal(w).mean(),
                    "previous": np.diagonal(w, -1).mean(),
                    "next": np.diagonal(w, 1).mean(),
                    "first": w[:, 0].mean(),
                    "max": w.max(axis=1).mean(),
                },
                rel=1e-4,
                abs=1e-6,
            )
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"


def test_figures_that_need_two_tokens_are_null_for_one(client):
    opened = trace(client, ids=[7])
    for head in client.get(f"/api/traces/{opened['id']}/heads?layers=2:3").json()["sites"][0]["heads"]:
        assert head == {"entropy": 0, "diagonal": 1, "previous": None, "next": None, "first": 1, "max": 1}


def test_links_hold_the_weight_of_one_pair_in_every_head(client):
    opened = trace(client, text=TEXT)
    body = client.get(f"/api/traces/{opened['id']}/links/encoder.self?query=5&key=2").json()
    assert (body["query"], body["key"]) == (5, 2)
    np.testing.assert_allclose(body["weights"], all_weights(client, opened)[:, :, 5, 2], atol=1e-6)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("overview/decoder.self", "no attention called “decoder.self”: it has encoder.self"),
        ("overview/encoder.cross", "no attention called “encoder.cross”"),
        ("overview/encoder.self?layers=2:4", "Layers 2:4 are not all there: this model has layers 0:3"),
        ("heads?layers=7:9", "this model has layers 0:3"),
        ("attention/encoder.self.3/0", "no site “encoder.self.3”: it has encoder.self.0 to encoder.self.2"),
        ("attention/nonsense/0", "no site “nonsense”"),
        ("attention/encoder.self.0/5", "no head 5 in this trace: they go from 0 to 4"),
        ("attention/encoder.self.0/0?rows=0:9", "no query 8 in this trace: they go from 0 to 7"),
        ("attention/encoder.self.0/0?cols=8:9", "no key 8 in this trace"),
        ("pair/encoder.self.0/0?query=8&key=0", "no query 8"),
        ("pair/encoder.self.0/0?query=0&key=99999999999999999999", "no key 99999999999999999999"),
        ("pair/encoder.self.9/0?query=0&key=0", "no site"),
        ("links/encoder.self?query=0&key=8", "no key 8"),
        ("links/encoder?query=0&key=0", "no attention called “encoder”"),
    ],
)
def test_what_a_trace_does_not_have(client, path, words):
    opened = trace(client, text=TEXT)
    assert words in problem(client.get(f"/api/traces/{opened['id']}/{path}"), 404, "unknown-site")["detail"]


@pytest.mark.parametrize(
    "text", ["3", "3:3", "4:2", "-1:2", ":", "a:b", "1:2:3", "1.5:2", "", "1:", "99999999:100000000"]
)
@pytest.mark.parametrize("name", ["rows", "cols", "layers"])
def test_a_range_that_is_none(client, name, text):
    opened = trace(client, text=TEXT)
    path = "heads" if name == "layers" else "attention/encoder.self.0/0"
    answer = client.get(f"/api/traces/{opened['id']}/{path}", params={name: text})
    assert "write it as a:b with a below b" in problem(answer, 422, "bad-input")["detail"]


@pytest.mark.parametrize(
    "query",
    ["stage=nonsense", "max=0", "max=8193", "pool=min", "format=csv", "max=many"],
)
def test_a_parameter_that_cannot_be(client, query):
    opened = trace(client, text=TEXT)
    answer = client.get(f"/api/traces/{opened['id']}/attention/encoder.self.0/0?{query}")
    body = problem(answer, 422, "bad-request")
    assert body["field"] == query.split("=")[0]
    assert body["field"] in body["detail"]


@pytest.mark.parametrize(
    "path", ["attention/encoder.self.0/-1", "attention/encoder.self.0/x", "pair/encoder.self.0/0?query=0"]
)
def test_an_index_that_is_none(client, path):
    opened = trace(client, text=TEXT)
    problem(client.get(f"/api/traces/{opened['id']}/{path}"), 422, "bad-request")


@pytest.mark.parametrize(
    ("dtype", "travels", "exact"),
    [("bfloat16", np.float32, 0.1), ("float16", np.float32, 0.02), ("float64", np.float64, 1e-5)],
)
def test_other_arithmetic(client, models, dtype, travels, exact):
    """Whatever a model runs in, what travels is a number NumPy knows, and the figures stay in range."""
    reference = all_weights(client, trace(client, ids=ids(12)))
    with serving(models, dtype=dtype) as other:
        load(other, BERT)
        opened = trace(other, ids=ids(12))
        assert opened["dtype"] == dtype
        assert weights(other, opened, "encoder.self.0", 0).dtype == travels
        assert np.abs(all_weights(other, opened)[0] - reference[0]).max() < exact
        address = f"/api/traces/{opened['id']}"
        assert npy(other.get(f"{address}/overview/encoder.self")).dtype == np.uint8
        assert other.get(f"{address}/pair/encoder.self.0/0?query=1&key=2").json()["contribution_norm"] > 0
        assert other.get(f"{address}/heads").status_code == 200
        assert opened["id"] != trace(client, ids=ids(12))["id"]
        request = {"model": BERT, "ids": ids(12)}
        assert other.post("/api/compare", json={"a": request, "b": request}).json()["overall"]["tv"] == 0


def test_positions_of_two_inputs_are_not_held_against_each_other():
    found = views.figures(tiny_cross())[0]
    assert [found[name] for name in ("diagonal", "previous", "next")] == [None, None, None]
    assert found["first"] is not None


def tiny_cross() -> SiteTrace:
    q, k, v = torch.randn(3, 1, 4, 2)
    return SiteTrace("decoder.cross.0", q, k, v, ScoreRule((1.0,), (Bidirectional(),)))
