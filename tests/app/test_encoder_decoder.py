"""Models that read one text, or a sound, and write another: three kinds of attention with their own axes."""

import base64
import io
import wave

import numpy as np
import pytest
import torch

from app.schemas import RECORDABLES
from app.services.limits import trace_bytes
from model.generate import greedy
from model.inputs import Inputs
from model.plan import Plan
from tests.serving import (
    BART,
    BERT,
    T5,
    TEXT,
    WHISPER,
    app_of,
    load,
    npy,
    problem,
    serving,
    trace,
    weights,
)
from tests.tiny import ids

SOURCE, TARGET = "the animal did it", "it did the animals a"
IDS = [2, 5, 6, 8, 12, 3]
CAUSAL_ENCODER = [{"kind": "set_mask", "rule": {"name": "causal"}, "sites": "encoder.self.*"}]


def engine(client):
    return app_of(client).state.services.engine()


def loaded(client, opened):
    return engine(client).entry(opened["id"]).loaded


def refused(client, status=422, slug="bad-input", **request):
    return problem(client.post("/api/traces", json=request), status, slug)["detail"]


def sound(seconds=0.7, rate=16_000, seed=0):
    """A WAV file in base64."""
    samples = np.random.default_rng(seed).normal(0, 8000, int(seconds * rate)).clip(-32768, 32767)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.astype("<i2").tobytes())
    return base64.b64encode(file.getvalue()).decode()


def test_a_target_that_is_given_runs_behind_the_start_without_its_end(client):
    body = trace(client, model=BART, text=SOURCE, target=TARGET)
    assert [token["text"] for token in body["source_tokens"]] == [
        "[CLS]",
        "the",
        "animal",
        "did",
        "it",
        "[SEP]",
    ]
    assert [token["id"] for token in body["source_tokens"]] == IDS
    assert [token["text"] for token in body["tokens"]] == ["[CLS]", "it", "did", "the", "animal", "s", "a"]
    assert body["tokens"][1]["span"] == [0, 2]
    assert body["source_tokens"][1]["span"] == [0, 3]
    assert body["written"] is False
    assert body["readout"]["position"] == 6
    assert len(body["readout"]["top"]) == 10


def test_sites_say_which_tokens_their_queries_and_keys_are(client):
    body = trace(client, model=BART, text=SOURCE, target=TARGET)
    facts = {
        site["site"]: (site["query_tokens"], site["key_tokens"], site["queries"], site["keys"], site["mask"])
        for site in body["sites"]
    }
    source, target = len(body["source_tokens"]), len(body["tokens"])
    encoder = ("source_tokens", "source_tokens", source, source, "bidirectional")
    decoder = ("tokens", "tokens", target, target, "causal")
    cross = ("tokens", "source_tokens", target, source, "bidirectional")
    assert facts == (
        {f"encoder.self.{layer}": encoder for layer in range(3)}
        | {f"decoder.self.{layer}": decoder for layer in range(2)}
        | {f"decoder.cross.{layer}": cross for layer in range(2)}
    )
    assert [site["heads"] for site in body["sites"]] == [5] * 3 + [6] * 4
    assert {(site["stack"], site["kind"]) for site in body["sites"]} == {
        ("encoder", "self"),
        ("decoder", "self"),
        ("decoder", "cross"),
    }


@pytest.mark.parametrize(("model", "asked"), [(BART, {"text": SOURCE}), (T5, {"ids": IDS})])
@pytest.mark.parametrize("plan", [[], CAUSAL_ENCODER])
def test_without_a_target_the_model_writes_one(client, model, asked, plan):
    body = trace(client, model=model, **asked, plan=plan)
    assert body["written"] is True
    model_there = loaded(client, body)
    config = model_there.config
    written = [token["id"] for token in body["tokens"]]
    assert written[: len(config.start)] == list(config.start)
    inputs = Inputs(Inputs.of(config.start).ids, source=Inputs.of(IDS))
    limit = len(written) - len(config.start)
    assert written[len(config.start) :] == list(
        greedy(model_there.transformer, inputs, config.stop, limit, Plan.parse(plan))
    )
    assert limit > 3
    longest = config.stack.max_tokens
    cut = [notice for notice in body["notices"] if "cut after" in notice]
    assert bool(cut) == (len(written) == longest)
    # What was written is a target like any other.
    again = trace(client, model=model, **asked, plan=plan, target_ids=written)
    assert again["id"] == body["id"]
    assert again["written"] is False


def test_a_target_may_be_ids(client):
    by_text = trace(client, model=BART, text=SOURCE, target=TARGET)
    by_ids = trace(client, model=BART, text=SOURCE, target_ids=[token["id"] for token in by_text["tokens"]])
    assert by_ids["id"] == by_text["id"]
    assert [token["span"] for token in by_ids["tokens"]] == [None] * 7
    assert trace(client, model=BART, ids=IDS, target=TARGET)["id"] == by_text["id"]
    other = trace(client, model=BART, text=SOURCE, target_ids=[2, 5])
    assert other["id"] != by_text["id"]
    source = trace(client, model=BART, text="the animal", target=TARGET)
    assert source["id"] != by_text["id"]


def test_every_view_of_every_kind_of_attention(client):
    opened = trace(client, model=BART, text=SOURCE, target=TARGET)
    address = f"/api/traces/{opened['id']}"
    sizes = {"encoder.self": (3, 5, 6, 6), "decoder.self": (2, 6, 7, 7), "decoder.cross": (2, 6, 7, 6)}
    entry = engine(client).entry(opened["id"])
    for group, (layers, heads, queries, keys) in sizes.items():
        maps = npy(client.get(f"{address}/overview/{group}"))
        assert maps.shape == (layers, heads, queries, keys)
        found = client.get(f"{address}/links/{group}", params={"query": 3, "key": 2}).json()["weights"]
        for layer in range(layers):
            site = entry.trace.sites[f"{group}.{layer}"]
            expected = site.attention(site.all_heads, range(queries)).numpy()
            np.testing.assert_array_equal(maps[layer], np.round(expected * 255).astype(np.uint8))
            np.testing.assert_allclose(found[layer], expected[:, 3, 2], rtol=1e-5, atol=1e-7)
            head = weights(client, opened, f"{group}.{layer}", heads - 1)
            np.testing.assert_allclose(head, expected[-1], rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(head.sum(axis=1), 1, atol=1e-6)
    assert npy(client.get(f"{address}/overview/decoder.cross?size=4")).shape == (2, 6, 4, 4)
    figures = client.get(f"{address}/heads").json()["sites"]
    assert [site["site"] for site in figures] == [site["site"] for site in opened["sites"]]


def test_a_pair_of_cross_attention_reads_its_query_from_one_text_and_its_key_from_the_other(client):
    opened = trace(client, model=BART, text=SOURCE, target=TARGET)
    address = f"/api/traces/{opened['id']}"
    pair = client.get(f"{address}/pair/decoder.cross.1/2", params={"query": 1, "key": 2}).json()
    assert pair["query"] == {"index": 1, "text": "it"}
    assert pair["key"] == {"index": 2, "text": "animal"}
    assert pair["weight"] == pytest.approx(weights(client, opened, "decoder.cross.1", 2)[1, 2], rel=1e-5)
    assert pair["bias_words"] == "none: cross-attention knows no positions of its own"
    w_o = loaded(client, opened).transformer.get_parameter("stack.blocks.1.cross.o.weight").double().numpy()
    added = pair["weight"] * w_o[:, 20:30] @ np.array(pair["v"])
    assert pair["contribution_norm"] == pytest.approx(np.linalg.norm(added), rel=1e-5)
    own = client.get(f"{address}/pair/encoder.self.0/0", params={"query": 5, "key": 0}).json()
    assert (own["query"]["text"], own["key"]["text"]) == ("[SEP]", "[CLS]")
    assert own["bias_words"] == "none: positions were added to the embeddings"
    for query, key in ((7, 0), (0, 6)):
        problem(
            client.get(f"{address}/pair/decoder.cross.1/2", params={"query": query, "key": key}),
            404,
            "unknown-site",
        )


def test_a_pair_says_what_positions_add(client):
    opened = trace(client, model=T5, ids=IDS, target_ids=[0, 5, 6, 7])
    for site, query, key in (("encoder.self.1", 4, 1), ("decoder.self.0", 3, 1)):
        pair = client.get(
            f"/api/traces/{opened['id']}/pair/{site}/3", params={"query": query, "key": key}
        ).json()
        assert pair["bias_words"] == "a trained bias for this head and distance"
        stack = loaded(client, opened).transformer
        table = (stack.encoder.stack if site.startswith("encoder") else stack.stack).bias
        bucket = table.bucket(torch.tensor(key - query))
        assert pair["bias"] == pytest.approx(table.table[bucket, 3].item(), abs=1e-5)
        assert pair["bias"] != 0
        assert pair["score"] == pytest.approx(pair["scaled"] + pair["bias"], rel=1e-5, abs=1e-5)
        assert (pair["scale"], pair["scale_words"]) == (1.0, "1")
    cross = client.get(f"/api/traces/{opened['id']}/pair/decoder.cross.0/3?query=3&key=1").json()
    assert cross["bias"] == 0


def test_what_is_shorter_and_what_is_longer(client):
    for source, target in ((1, 30), (30, 1), (40, 8), (8, 40)):
        body = trace(client, model=T5, ids=ids(source), target_ids=ids(target))
        cross = next(site for site in body["sites"] if site["site"] == "decoder.cross.1")
        assert (cross["queries"], cross["keys"]) == (target, source)


def test_plans_choose_the_kind_of_attention(client):
    asked = {"model": BART, "text": SOURCE, "target": TARGET}
    own = trace(client, **asked)
    plan = [{"kind": "block", "query": 1, "key": 2, "sites": "decoder.cross.0"}]
    blocked = trace(client, **asked, plan=plan)
    assert blocked["id"] != own["id"]
    assert blocked["plan_words"] == "1 → 2 blocked at decoder.cross.0"
    assert weights(client, blocked, "decoder.cross.0", 0)[1, 2] == 0
    assert weights(client, blocked, "decoder.cross.1", 0)[1, 2] > 0
    np.testing.assert_array_equal(
        weights(client, blocked, "encoder.self.2", 1), weights(client, own, "encoder.self.2", 1)
    )
    refusals = {
        "several kinds of attention": {"kind": "block", "query": 1, "key": 2},
        "blocks key 6": {"kind": "block", "query": 1, "key": 6, "sites": "decoder.cross.*"},
        "not 7 × 6": {"kind": "set_attention", "weights": [[1]], "sites": "decoder.cross.0"},
        "has no cross-attention": {"kind": "drop_sublayer", "sublayer": "cross", "sites": "encoder.*"},
        "whole stack": {"kind": "set_position", "mode": "off", "sites": "decoder.cross.*"},
    }
    for words, step in refusals.items():
        assert words in refused(client, slug="bad-plan", **asked, plan=[step])


def test_attention_left_out_has_no_site(client):
    asked = {"model": BART, "text": SOURCE, "target": TARGET}
    plan = [{"kind": "drop_sublayer", "sublayer": "cross", "sites": "decoder.self.0"}]
    opened = trace(client, **asked, plan=plan)
    names = [site["site"] for site in opened["sites"]]
    assert "decoder.cross.0" not in names
    assert "decoder.cross.1" in names
    address = f"/api/traces/{opened['id']}"
    problem(client.get(f"{address}/attention/decoder.cross.0/0"), 404, "unknown-site")
    assert npy(client.get(f"{address}/overview/decoder.cross")).shape[0] == 1
    answer = client.post("/api/compare", json={"a": asked, "b": asked | {"plan": plan}}).json()
    assert [site["site"] for site in answer["sites"]] == names
    assert "leaves attention out" in answer["sites_reason"]


def test_a_run_without_any_attention_is_a_run(client):
    plan = [{"kind": "drop_sublayer", "sublayer": "attention"}]
    asked = {"model": BERT, "text": TEXT, "plan": plan}
    opened = trace(client, **asked)
    assert opened["sites"] == []
    address = f"/api/traces/{opened['id']}"
    for path in ("overview/encoder.self", "attention/encoder.self.0/0", "links/encoder.self?query=0&key=0"):
        detail = problem(client.get(f"{address}/{path}"), 404, "unknown-site")["detail"]
        assert "left all" in detail
    assert client.get(f"{address}/heads").json()["sites"] == []
    for other in ({"model": BERT, "text": TEXT}, {"model": "local:tiny/llama", "text": TEXT}, asked):
        for a, b in ((asked, other), (other, asked)):
            answer = client.post("/api/compare", json={"a": a, "b": b, "by": "word"})
            assert answer.status_code == 200, answer.text
            assert answer.json()["overall"]["tv"] is None


@pytest.mark.parametrize(("model", "asked"), [(BART, {"text": SOURCE, "target": TARGET}), (T5, {"ids": IDS})])
@pytest.mark.parametrize("record", [[], *[[one] for one in RECORDABLES], list(RECORDABLES)])
def test_the_estimate_is_what_a_trace_holds(client, model, asked, record):
    body = trace(client, model=model, record=record, **asked)
    config, lengths = loaded(client, body).config, (len(body["tokens"]), len(body["source_tokens"]))
    assert trace_bytes(config, lengths, frozenset(record), 1, 4) == body["sizes"]["bytes"]


def test_both_texts_have_a_limit(client):
    long = "the animal " * 30
    source = problem(client.post("/api/traces", json={"model": BART, "text": long}), 422, "too-long")
    assert (source["limit"], source["tokens"]) == (48, 62)
    assert trace(client, model=BART, text=long[: source["cut"]], target="it")
    target = problem(
        client.post("/api/traces", json={"model": BART, "text": "it", "target": long}), 422, "too-long"
    )
    assert (target["limit"], target["tokens"]) == (48, 61)
    assert trace(client, model=BART, text="it", target=long[: target["cut"]])["sizes"]["tokens"] == 48


def test_a_trace_over_the_budget_is_refused(models):
    with serving(models, trace_bytes=60_000) as client:
        load(client, T5)
        detail = refused(client, 413, "over-budget", model=T5, ids=ids(30), target_ids=ids(30))
        assert "60 tokens" in detail
        assert trace(client, model=T5, ids=ids(5), target_ids=ids(5))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"model": BERT, "text": TEXT, "target": "it"}, "leave out the target"),
        ({"model": BERT, "text": TEXT, "target_ids": [1]}, "leave out the target"),
        ({"model": BERT, "text": TEXT, "audio": "AAAA"}, "leave out the target and the sound"),
        ({"model": BART, "text": SOURCE, "audio": "AAAA"}, "reads text, not sound"),
        ({"model": BART, "text": SOURCE, "target": "it", "target_ids": [1]}, "one of the two"),
        ({"model": BART, "target": "it"}, "a text or a list of ids"),
        ({"model": BART, "text": SOURCE, "target_ids": []}, "empty"),
        ({"model": BART, "text": SOURCE, "target_ids": [97]}, "Id 97 at position 0"),
        ({"model": BART, "ids": [1], "text_pair": "it"}, "second text"),
        ({"model": T5, "text": SOURCE}, "without a tokenizer"),
        ({"model": T5, "ids": [1], "target": "it"}, "without a tokenizer"),
        ({"model": WHISPER}, "reads sound"),
        ({"model": WHISPER, "text": SOURCE}, "reads sound"),
        ({"model": WHISPER, "audio": "not base64!"}, "not base64"),
        ({"model": WHISPER, "audio": base64.b64encode(b"ID3 something").decode()}, "neither WAV nor FLAC"),
        ({"model": WHISPER, "audio": sound()[:40]}, "."),
        ({"model": WHISPER, "audio": sound(), "ids": [1]}, "reads sound"),
    ],
)
def test_what_does_not_go_together_is_refused_in_words(client, request_, words):
    assert words in refused(client, **request_)


def test_an_empty_target_is_told_from_none(client):
    assert "The target is empty" in refused(client, model=BART, text=SOURCE, target="")
    assert trace(client, model=BART, text=SOURCE, target_ids=[2])["sizes"]["tokens"] == 1


def test_a_sound_is_heard_and_written_down(client):
    body = trace(client, model=WHISPER, audio=sound())
    assert body["written"] is True
    frames = body["source_tokens"]
    assert len(frames) == 50
    assert [frame["text"] for frame in frames[:3]] == ["0.00 s", "0.02 s", "0.04 s"]
    assert {(frame["id"], frame["special"]) for frame in frames} == {(-1, False)}
    groups = {site["stack"] + "." + site["kind"] for site in body["sites"]}
    assert groups == {"encoder.self", "decoder.self", "decoder.cross"}
    pair = client.get(
        f"/api/traces/{body['id']}/pair/decoder.cross.0/1", params={"query": 0, "key": 7}
    ).json()
    assert (pair["query"]["text"], pair["key"]["text"]) == ("[CLS]", "0.14 s")
    given = trace(client, model=WHISPER, audio=sound(), target="the animal")
    assert [token["text"] for token in given["tokens"]] == ["[CLS]", "the", "animal"]
    assert trace(client, model=WHISPER, audio=sound(), target="the animal")["id"] == given["id"]
    assert trace(client, model=WHISPER, audio=sound(seed=1), target="the animal")["id"] != given["id"]


def test_a_sound_that_is_too_long_or_was_changed_is_said(client):
    detail = refused(client, slug="too-long", model=WHISPER, audio=sound(seconds=1.5))
    assert "1.5 s" in detail
    resampled = trace(client, model=WHISPER, audio=sound(rate=8000), target="it")
    assert any("8000 Hz" in notice for notice in resampled["notices"])


def test_two_runs_are_compared_on_the_same_source_and_target(client):
    a = {"model": BART, "text": SOURCE, "target": TARGET}
    plan = [{"kind": "block", "query": 3, "key": 1, "sites": "decoder.cross.0"}]
    answer = client.post("/api/compare", json={"a": a, "b": a | {"plan": plan}}).json()
    assert answer["same_weights"] is True
    assert answer["sites_reason"] is None
    opened = [trace(client, **side) for side in (a, a | {"plan": plan})]
    for site in answer["sites"]:
        for head, found in enumerate(site["heads"]):
            one, other = (weights(client, side, site["site"], head).astype(float) for side in opened)
            change = np.abs(one - other)
            assert found["max"] == pytest.approx(change.max(), rel=1e-3, abs=1e-6)
            assert found["tv"] == pytest.approx(change.sum(axis=1).mean() / 2, rel=1e-3, abs=1e-6)
    changed = {site["site"] for site in answer["sites"] if any(head["tv"] > 1e-6 for head in site["heads"])}
    assert changed == {"decoder.cross.0", "decoder.self.1", "decoder.cross.1"}
    assert [(layer["stack"], layer["layer"]) for layer in answer["layers"]] == [
        *[("encoder", layer) for layer in range(3)],
        *[("decoder", layer) for layer in range(2)],
    ]
    assert [layer["relative"] == 0 for layer in answer["layers"]] == [True] * 3 + [False] * 2
    assert answer["readout"]["kind"] == "logits"


def test_the_target_one_side_wrote_can_be_given_to_the_other(client):
    a = {"model": BART, "text": SOURCE}
    wrote = [token["id"] for token in trace(client, **a)["tokens"]]
    b = a | {"plan": CAUSAL_ENCODER, "target_ids": wrote}
    answer = client.post("/api/compare", json={"a": a, "b": b})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("b", "why"),
    [
        ({"model": BART, "text": SOURCE, "target": "the animal"}, "same source and the same target"),
        ({"model": BART, "text": "the animal", "target": TARGET}, "same source and the same target"),
        ({"model": BERT, "text": SOURCE}, f"{BART} reads a source and a target, {BERT} one text"),
        ({"model": WHISPER, "audio": sound(), "target": TARGET}, "same source and the same target"),
    ],
)
def test_other_sources_or_targets_are_not_compared(client, b, why):
    a = {"model": BART, "text": SOURCE, "target": TARGET}
    for one, other in ((a, b), (b, a)):
        answer = client.post("/api/compare", json={"a": one, "b": other})
        assert why in problem(answer, 422, "bad-input")["detail"]


def test_two_sounds_are_not_one_source(client):
    a, b = ({"model": WHISPER, "audio": sound(seed=seed), "target": TARGET} for seed in (0, 1))
    assert client.post("/api/compare", json={"a": a, "b": a}).status_code == 200
    assert (
        "same source"
        in problem(client.post("/api/compare", json={"a": a, "b": b}), 422, "bad-input")["detail"]
    )


def test_two_models_are_compared_by_the_attention_between_their_targets(client):
    given = {"ids": IDS, "target_ids": [2, 5, 6, 7]}
    answer = client.post("/api/compare", json={"a": {"model": BART, **given}, "b": {"model": T5, **given}})
    body = answer.json()
    assert answer.status_code == 200, body
    assert body["same_weights"] is False
    assert body["overall"]["over"] == "mean map"
    sites = {pair[side]["site"].rpartition(".")[0] for pair in body["closest"] for side in "ab"}
    assert sites == {"decoder.self"}
    assert len(body["closest"]) == 2 * 6
