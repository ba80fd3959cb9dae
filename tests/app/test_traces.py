import re

import numpy as np
import pytest

from app.schemas import RECORDABLES
from tests.serving import (
    BERT,
    CAUSAL,
    LLAMA,
    MASKED,
    MUTE,
    TEXT,
    WILD,
    all_weights,
    app_of,
    npy,
    problem,
    serving,
    trace,
)
from tests.tiny import ids


def test_what_opening_a_trace_tells(client):
    answer = client.post("/api/traces", json={"model": BERT, "text": TEXT})
    assert answer.status_code == 201
    body = answer.json()
    assert re.fullmatch(r"[0-9a-f]{32}", body["id"])
    assert body["model"]["id"] == BERT
    assert body["model"]["title"] == "bert"
    assert body["model"]["family"] == "bert"
    assert body["model"]["revision"]
    assert [token["id"] for token in body["tokens"]] == [2, 5, 6, 7, 8, 17, 1, 3]
    assert body["tokens"][0] == {
        "id": 2,
        "text": "[CLS]",
        "span": None,
        "words": [],
        "special": True,
        "segment": 0,
    }
    assert body["tokens"][3] == {
        "id": 7,
        "text": "s",
        "span": [10, 11],
        "words": [2],
        "special": False,
        "segment": 0,
    }
    assert body["sites"][2] == {
        "site": "encoder.self.2",
        "stack": "encoder",
        "kind": "self",
        "layer": 2,
        "heads": 5,
        "kv_heads": 5,
        "d_k": 12,
        "scale": pytest.approx(12**-0.5),
        "scale_words": "1/√12",
        "mask": "bidirectional",
        "mask_by_head": False,
        "queries": 8,
        "keys": 8,
        "query_tokens": "tokens",
        "key_tokens": "tokens",
    }
    # q, k, v of 3 layers of 60 numbers each, and the last state, in 4 bytes a number
    assert body["sizes"] == {"tokens": 8, "layers": 3, "heads": 5, "bytes": 8 * (3 * 3 * 60 + 60) * 4}
    assert (body["device"], body["dtype"], body["plan"], body["plan_words"]) == (
        "cpu",
        "float32",
        [],
        "the model's own",
    )
    assert body["ms"] > 0
    assert (body["source_tokens"], body["written"]) == (None, False)
    assert body["notices"] == ["1 piece of the text is unknown to this model's vocabulary: cab became [UNK]."]
    assert set(body) == {
        *("id", "model", "tokens", "sites", "sizes", "device", "dtype", "ms"),
        *("plan", "plan_words", "readout", "notices", "source_tokens", "written"),
    }


def test_an_encoder_without_token_head_reads_out_how_tokens_resemble_the_sentence(client):
    body = trace(client, text=TEXT)
    final = app_of(client).state.services.engine().entry(body["id"]).trace.final.double().numpy()
    mean = final.mean(axis=0)
    expected = final @ mean / np.linalg.norm(final, axis=1) / np.linalg.norm(mean)
    assert body["readout"]["kind"] == "embedding"
    assert body["readout"]["similarity"] == pytest.approx(expected.tolist(), rel=1e-4)


def test_a_decoder_predicts_the_next_token(client):
    body = trace(client, model=LLAMA, text="hello hi")
    entry = app_of(client).state.services.engine().entry(body["id"])
    logits = entry.trace.logits.double().numpy()
    assert logits.shape == (1, 300)
    p = np.exp(logits[0] - logits[0].max())
    p /= p.sum()
    readout = body["readout"]
    assert (readout["kind"], readout["position"]) == ("logits", len(body["tokens"]) - 1)
    assert [top["id"] for top in readout["top"]] == np.argsort(-p)[:10].tolist()
    assert [top["p"] for top in readout["top"]] == pytest.approx(np.sort(p)[::-1][:10].tolist(), rel=1e-4)
    assert all(top["text"] for top in readout["top"])


def test_a_masked_model_predicts_every_masked_token(client):
    body = trace(client, model=MASKED, text="the [MASK] did [MASK] it")
    positions = [i for i, token in enumerate(body["tokens"]) if token["text"] == "[MASK]"]
    assert len(positions) == 2
    assert [found["position"] for found in body["readout"]["positions"]] == positions
    for found in body["readout"]["positions"]:
        assert len(found["top"]) == 10
        assert sum(top["p"] for top in found["top"]) <= 1
    assert trace(client, model=MASKED, text="the it")["readout"] == {"kind": "masked", "positions": []}


def test_a_run_that_overflows_says_so_and_hands_out_no_number_that_is_none(client):
    body = trace(client, model=WILD, ids=[3, 1, 2])
    assert body["readout"] is None
    (notice,) = (notice for notice in body["notices"] if "left the range of its number format" in notice)
    assert notice.endswith("weights that are not numbers stay blank in the pictures.")
    drawn = npy(client.get(f"/api/traces/{body['id']}/overview/decoder.self"))
    assert not drawn[2, 0, 2].any()
    address = f"/api/traces/{body['id']}"
    for path in ("heads", "links/decoder.self?query=2&key=1", "pair/decoder.self.2/0?query=2&key=1"):
        assert client.get(f"{address}/{path}").status_code == 200
    shown = client.get(f"{address}/attention/decoder.self.2/0?format=json").json()["values"]
    assert shown[2][0] is None
    request = {"model": WILD, "ids": [3, 1, 2]}
    compared = client.post("/api/compare", json={"a": request, "b": request | {"ids": [3, 1, 4]}})
    assert compared.status_code == 422
    compared = client.post("/api/compare", json={"a": request, "b": request})
    assert compared.status_code == 200
    assert compared.json()["sites"][2]["heads"][0]["tv"] is None


def test_the_same_request_has_the_same_id_and_is_run_once(client, monkeypatch):
    first = trace(client, text="did it")
    runs = count_runs(monkeypatch)
    again = trace(client, text="did it")
    assert again == first
    assert runs == []


def test_texts_with_the_same_ids_share_a_trace_but_keep_their_own_spans(client):
    one, other = trace(client, text="the animal"), trace(client, text="THE  animal")
    assert one["id"] == other["id"]
    assert [token["span"] for token in one["tokens"]] == [None, [0, 3], [4, 10], None]
    assert [token["span"] for token in other["tokens"]] == [None, [0, 3], [5, 11], None]


def test_ids_run_as_they_are(client):
    by_text = trace(client, text="the animal")
    by_ids = trace(client, ids=[2, 5, 6, 3])
    assert by_ids["id"] == by_text["id"]
    assert [token["text"] for token in by_ids["tokens"]] == ["[CLS]", "the", "animal", "[SEP]"]
    assert all(token["span"] is None and token["words"] == [] for token in by_ids["tokens"])


@pytest.mark.parametrize(
    "changed",
    [
        {"model": MASKED},
        {"ids": [2, 5, 7, 3]},
        {"ids": [2, 5, 6]},
        {"plan": CAUSAL},
        {"plan": [{"kind": "block", "query": 1, "key": 2}]},
        {"plan": [{"kind": "set_scale", "rule": "none"}]},
        {"record": ["resid"]},
    ],
)
def test_what_decides_the_numbers_decides_the_id(client, changed):
    asked = {"ids": [2, 5, 6, 3]}
    assert trace(client, **asked)["id"] != trace(client, **asked | changed)["id"]


def test_segments_decide_the_id(client):
    pair = trace(client, text="the animal", text_pair="did it")
    tokens = [token["id"] for token in pair["tokens"]]
    assert [token["segment"] for token in pair["tokens"]] == [0, 0, 0, 0, 1, 1, 1]
    flat = trace(client, ids=tokens)
    assert pair["id"] != flat["id"]
    assert not np.allclose(all_weights(client, pair), all_weights(client, flat))


def test_the_revision_decides_the_id(models, client):
    before = trace(client, ids=[1, 2, 3], model=MUTE)
    with serving(models) as other:
        other.post("/api/models/load", json={"model": MUTE})
        assert trace(other, ids=[1, 2, 3], model=MUTE)["id"] == before["id"]
    file = models / "mute" / "config.json"
    file.write_text(file.read_text() + "\n")
    with serving(models) as other:
        other.post("/api/models/load", json={"model": MUTE})
        assert trace(other, ids=[1, 2, 3], model=MUTE)["id"] != before["id"]


@pytest.mark.parametrize(
    ("model", "plan"),
    [
        (BERT, [{"kind": "set_mask", "rule": {"name": "bidirectional"}}]),
        (LLAMA, CAUSAL),
        (LLAMA, [{"kind": "set_scale", "rule": "inv_sqrt"}]),
        (BERT, [{"kind": "set_scale", "rule": "own", "times": 1}]),
        (BERT, [{"kind": "block", "query": 0, "key": 1, "heads": []}]),
    ],
)
def test_a_plan_that_changes_nothing_is_no_plan(client, model, plan):
    own, same = trace(client, model=model, text=TEXT), trace(client, model=model, text=TEXT, plan=plan)
    assert same["id"] == own["id"]
    assert same["plan"] == []
    assert same["plan_words"] == "the model's own"


def test_the_order_and_the_spelling_of_a_plan_do_not_matter(client):
    block = {"kind": "block", "query": 2, "key": 1}
    one = trace(client, text=TEXT, plan=[block, *CAUSAL])
    other = trace(
        client, text=TEXT, plan=[CAUSAL[0] | {"heads": [4, 3, 2, 1, 0], "sites": "encoder.*"}, block]
    )
    assert one["id"] == other["id"]
    assert one["plan"] == other["plan"]
    assert one["plan_words"] == "2 → 1 blocked; causal mask"


def test_a_causal_encoder_sees_nothing_of_what_comes_later(client):
    one = trace(client, ids=[2, 5, 6, 7, 8], plan=CAUSAL)
    other = trace(client, ids=[2, 5, 6, 9, 10, 11], plan=CAUSAL)
    assert one["sites"][0]["mask"] == "causal"
    a, b = all_weights(client, one), all_weights(client, other)
    assert np.triu(a, 1).max() == 0
    np.testing.assert_allclose(a[:, :, :3, :3], b[:, :, :3, :3], atol=1e-5)


def test_a_mask_for_one_head_is_told_apart(client):
    body = trace(client, text=TEXT, plan=[CAUSAL[0] | {"heads": [1], "sites": "encoder.self.0"}])
    first, second = body["sites"][:2]
    assert (first["mask"], first["mask_by_head"]) == ("differs by head", True)
    assert (second["mask"], second["mask_by_head"]) == ("bidirectional", False)
    weights = all_weights(client, body)
    assert np.triu(weights[0, 1], 1).max() == 0
    assert np.triu(weights[0, 0], 1).max() > 0


def test_a_scale_for_one_head_is_told_apart(client):
    body = trace(client, text=TEXT, plan=[{"kind": "set_scale", "rule": "inv", "heads": [0]}])
    assert (body["sites"][0]["scale"], body["sites"][0]["scale_words"]) == (None, "differs by head")


def test_a_model_without_tokenizer_runs_ids(client):
    body = trace(client, model=MUTE, ids=[1, 2, 3])
    assert [token["text"] for token in body["tokens"]] == ["1", "2", "3"]
    assert [top["text"] for top in body["readout"]["top"]] == [
        str(top["id"]) for top in body["readout"]["top"]
    ]
    assert len(body["sites"]) == 2
    refused = client.post("/api/traces", json={"model": MUTE, "text": "hello"})
    assert "without a tokenizer" in problem(refused, 422, "bad-input")["detail"]


def test_ids_past_the_tokenizers_vocabulary_run(client):
    """The model has 97 rows, the tokenizer 25 pieces, as where a vocabulary is padded to a round number."""
    body = trace(client, ids=[96, 5])
    assert [token["id"] for token in body["tokens"]] == [96, 5]
    assert [token["text"] for token in body["tokens"]] == ["‹id 96›", "the"]


def test_the_most_tokens_that_fit(client):
    assert trace(client, ids=ids(48))["sizes"]["tokens"] == 48


def count_runs(monkeypatch):
    """Notes every run of a model."""
    from app.services import runs as module

    runs = []
    real = module.run

    def noted(*args):
        runs.append(args)
        return real(*args)

    monkeypatch.setattr(module, "run", noted)
    return runs


def test_a_text_too_long_says_the_limit_and_where_to_cut(client, monkeypatch):
    runs = count_runs(monkeypatch)
    text = "the animal " * 30
    body = problem(client.post("/api/traces", json={"model": BERT, "text": text}), 422, "too-long")
    assert body["detail"] == f"The input has 62 tokens, but {BERT} has positions for 48: shorten it."
    assert (body["limit"], body["tokens"]) == (48, 62)
    assert trace(client, text=text[: body["cut"]])["sizes"]["tokens"] == 48
    assert len(runs) == 1


def test_a_trace_over_the_budget_is_refused_before_it_runs(models, monkeypatch):
    with serving(models, trace_bytes=100_000) as client:
        client.post("/api/models/load", json={"model": BERT})
        runs = count_runs(monkeypatch)
        body = problem(client.post("/api/traces", json={"model": BERT, "ids": ids(48)}), 413, "over-budget")
        needed = 48 * (3 * 3 * 60 + 60) * 4
        assert (body["needed"], body["budget"]) == (needed, 100_000)
        assert "48 tokens" in body["detail"]
        assert "ATLAS_TRACE_BYTES" in body["detail"]
        assert runs == []
        assert trace(client, ids=ids(10))["sizes"]["tokens"] == 10
        assert len(runs) == 1


@pytest.mark.parametrize("model", [BERT, MASKED, LLAMA, MUTE])
@pytest.mark.parametrize("record", [[], ["resid"], list(RECORDABLES)])
def test_the_estimate_is_what_a_trace_holds(client, model, record):
    from app.services.limits import trace_bytes

    request = {"model": model, "record": record, "ids": [4, 5, 6, 4] if model == MASKED else ids(7)}
    body = trace(client, **request)
    config = app_of(client).state.services.engine().entry(body["id"]).loaded.config
    rows = {"embedding": 0, "logits": 1, "masked": 2}[config.readout]
    estimate = trace_bytes(config, (body["sizes"]["tokens"], 0), frozenset(record), rows, 4)
    assert body["sizes"]["bytes"] == estimate
