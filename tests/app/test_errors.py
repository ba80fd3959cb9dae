"""Bad input: a problem document with one sentence that says what happened, to which input, and what to do."""

import json
import logging

import pytest

from app.services import pair
from tests.serving import (
    BERT,
    BROKEN,
    CAUSAL,
    LLAMA,
    TEXT,
    load,
    problem,
    serving,
    trace,
)


def post(client, body, path="/api/traces"):
    content = body if isinstance(body, bytes | str) else json.dumps(body)
    return client.post(path, content=content, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    ("body", "slug", "words"),
    [
        ({"model": BERT}, "bad-input", "Give either a text or a list of ids to run"),
        ({"model": BERT, "text": None}, "bad-input", "Give either"),
        ({"model": BERT, "text": "a", "ids": [1]}, "bad-input", "one of the two"),
        ({"model": BERT, "text": ""}, "bad-input", "The text is empty: type or paste something."),
        ({"model": LLAMA, "text": ""}, "bad-input", "The text is empty"),
        ({"model": BERT, "text": "   \n\t "}, "bad-input", "tokenizer leaves nothing of the text"),
        ({"model": BERT, "text": " " * 100}, "bad-input", "leaves nothing"),
        ({"model": BERT, "text": "\u0010"}, "bad-input", "leaves nothing"),
        ({"model": BERT, "text": "a", "text_pair": ""}, "bad-input", "The second text is empty"),
        ({"model": BERT, "text": "a", "text_pair": "  "}, "bad-input", "the second text"),
        ({"model": BERT, "ids": [5], "text_pair": "a"}, "bad-input", "A second text cannot go with ids"),
        ({"model": BERT, "ids": []}, "bad-input", "The list of ids is empty"),
        (
            {"model": BERT, "ids": [1, 97]},
            "bad-input",
            "Id 97 at position 1 is not in the vocabulary of 0 to 96",
        ),
        ({"model": BERT, "ids": [-1]}, "bad-input", "Id -1 at position 0"),
        ({"model": BERT, "ids": [10**30]}, "bad-input", f"Id {10**30} at position 0"),
        ({"model": BERT, "ids": [1.5]}, "bad-request", "ids 0"),
        ({"model": BERT, "ids": ["1"]}, "bad-request", "ids 0"),
        ({"model": BERT, "ids": [True]}, "bad-request", "ids 0"),
        ({"model": BERT, "ids": "1,2"}, "bad-request", "ids"),
        ({"model": BERT, "ids": [1] * 49}, "too-long", "49 tokens, but local:tiny/bert has positions for 48"),
        ({"model": BERT, "ids": [1] * 100_001}, "bad-request", "ids"),
        ({"model": BERT, "text": "a " * 10_000}, "too-long", "10002 tokens"),
        ({"model": LLAMA, "text": "a" * 10_000}, "too-long", "positions for 48"),
        ({"model": BERT, "text": "a" * 1_000_001}, "bad-request", "text"),
        ({"model": BERT, "text": 7}, "bad-request", "text"),
        ({"model": BERT, "text": ["a"]}, "bad-request", "text"),
        ({"model": None, "text": "a"}, "bad-request", "model"),
        ({"model": "", "text": "a"}, "bad-request", "model"),
        ({"model": "m" * 201, "text": "a"}, "bad-request", "model"),
        ({"text": "a"}, "bad-request", "model is not usable: field required"),
        (
            {"model": BERT, "text": "a", "layer": 1},
            "bad-request",
            "There is no field layer here: there are model, text, text_pair, ids, ",
        ),
        ({"model": BERT, "text": "a", "plan": None}, "bad-request", "plan"),
        ({"model": BERT, "text": "a", "plan": {}}, "bad-request", "plan"),
        ({"model": BERT, "text": "a", "plan": [None]}, "bad-request", "plan 0"),
        ({"model": BERT, "text": "a", "plan": [{}] * 1001}, "bad-request", "plan"),
        ({"model": BERT, "text": "a", "record": ["all"]}, "bad-request", "record"),
        ({"model": BERT, "text": "a", "record": None}, "bad-request", "record"),
        ([], "bad-request", "body"),
        ("null", "bad-request", "body"),
        ('"text"', "bad-request", "body"),
        ("", "bad-request", "body"),
        ("7", "bad-request", "body"),
    ],
)
def test_what_cannot_be_run(client, body, slug, words):
    assert words in problem(post(client, body), 422, slug)["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"{'model': 1}",
        b'{"model": "a",}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"[1" + b"1" * 5000 + b"]",
        b"nonsense",
    ],
)
def test_what_is_not_json(client, content):
    body = problem(post(client, content), 400, "malformed-json")
    assert body["detail"] == "The request's body is not JSON: mend it and send again."


HALF = r"\ud83d"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('"text": "half %s"', "half of a surrogate pair"),
        ('"text": "a", "text_pair": "%s"', "text_pair"),
        ('"text": "a", "%s": 1', ""),
        ('"text": "a", "plan": [{"%s": 1}]', ""),
        ('"text": "a", "plan": [{"kind": "%s"}]', ""),
        ('"text": "a", "plan": [{"kind": "block", "query": 0, "key": 1, "sites": "%s"}]', ""),
        ('"text": "a", "plan": [{"kind": "set_mask", "rule": {"name": "%s"}}]', ""),
        ('"text": "a", "plan": [{"kind": "set_mask", "rule": {"name": "causal", "%s": 1}}]', ""),
        ('"text": "a", "model": "%s"', "model"),
    ],
)
def test_half_a_surrogate_pair_anywhere(client, fields, words):
    answer = post(client, f'{{"model": "{BERT}", {fields % HALF}}}')
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ([{}], "kind"),
        ([{"kind": "dance"}], "dance"),
        ([{"kind": "set_mask"}], "rule"),
        ([{"kind": "set_mask", "rule": "causal"}], "rule"),
        ([{"kind": "set_mask", "rule": {"name": "diagonal"}}], "diagonal"),
        ([{"kind": "set_mask", "rule": {"name": "window", "left": -1, "right": 0}}], "left"),
        ([{"kind": "set_mask", "rule": {"name": "window", "left": 1.5, "right": 0}}], "left"),
        ([{"kind": "set_mask", "rule": {"name": "prefix", "length": 99}}], "prefix of 99 is longer"),
        ([{"kind": "set_mask", "rule": {"name": "custom", "allow": [[1]]}}], "not 8 × 8"),
        (
            [{"kind": "set_mask", "rule": {"name": "custom", "allow": [[0] * 8] * 8}}],
            "query 0 sees no key in encoder.self.0",
        ),
        ([{"kind": "block", "query": 8, "key": 0}], "blocks query 8, but the input has tokens 0 to 7"),
        ([{"kind": "block", "query": 0, "key": 99}], "key 99"),
        (
            [{"kind": "block", "query": 0, "key": 0, "heads": [5]}],
            "no head 5: this model's layers have heads 0 to 4",
        ),
        ([{"kind": "block", "query": 0, "key": 0, "sites": "decoder.*"}], "“decoder.*”"),
        (
            [{"kind": "block", "query": 3, "key": key} for key in range(8)],
            "query 3 sees no key in encoder.self.0",
        ),
        ([*CAUSAL, *CAUSAL], "twice"),
        ([{"kind": "set_scale", "times": 1e9}], "times"),
        ([{"kind": "set_scale", "times": "2"}], "times"),
        ([{"kind": "set_scale", "rule": "double"}], "rule"),
        ([{"kind": "block", "query": 0, "key": 0, "colour": "red"}], "colour"),
    ],
)
def test_a_plan_that_cannot_be(client, plan, words):
    body = problem(post(client, {"model": BERT, "text": TEXT, "plan": plan}), 422, "bad-plan")
    assert words in body["detail"]


def test_numbers_that_json_does_not_have(client):
    body = '{"model": "%s", "text": "a", "plan": [{"kind": "set_scale", "times": %s}]}'
    for value in ("NaN", "Infinity", "-Infinity", "1e999"):
        problem(post(client, body % (BERT, value)), 422, "bad-plan")


@pytest.mark.parametrize(
    ("model", "status", "slug", "words"),
    [
        ("nonsense", 404, "unknown-model", "There is no model 'nonsense'"),
        ("local:tiny/nonsense", 404, "unknown-model", "choose one that is listed"),
        ("local:tiny/../tiny/bert", 404, "unknown-model", "There is no model"),
        ("local:/etc/passwd", 404, "unknown-model", "There is no model"),
        ("../../etc/passwd", 404, "unknown-model", "There is no model"),
        ("bert\x00", 404, "unknown-model", "There is no model"),
        ("{0}{path}", 404, "unknown-model", "There is no model"),
        ("org/name", 403, "refused", "switched off"),
        ("minilm", 503, "model-not-ready", "minilm is not loaded"),
    ],
)
def test_a_model_that_cannot_be_used(client, model, status, slug, words):
    for answer in (
        post(client, {"model": model, "text": "a"}),
        post(client, {"a": {"model": BERT, "text": "a"}, "b": {"model": model, "text": "a"}}, "/api/compare"),
    ):
        assert words in problem(answer, status, slug)["detail"]


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        ({"model": "nonsense"}, 404, "unknown-model"),
        ({"model": "org/name"}, 403, "refused"),
        ({"model": BERT, "revision": "main"}, 404, "unknown-model"),
        ({}, 422, "bad-request"),
        ({"model": BERT, "revision": 7}, 422, "bad-request"),
        ({"model": BERT, "force": True}, 422, "bad-request"),
    ],
)
def test_a_load_that_cannot_begin(client, body, status, slug):
    problem(post(client, body, "/api/models/load"), status, slug)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"a": {"model": BERT, "text": "a"}},
        {"a": {"model": BERT, "text": "a"}, "b": None},
        {"a": {"model": BERT, "text": "a"}, "b": {"model": BERT, "text": "a"}, "by": "letter"},
        {"a": {"model": BERT, "text": "a"}, "b": {"model": BERT, "text": "a"}, "by": None},
    ],
)
def test_a_comparison_that_cannot_begin(client, body):
    problem(post(client, body, "/api/compare"), 422, "bad-request")


def test_a_side_that_cannot_run_says_why(client):
    body = {"a": {"model": BERT, "text": "a"}, "b": {"model": BERT, "text": ""}}
    assert "empty" in problem(post(client, body, "/api/compare"), 422, "bad-input")["detail"]


def test_a_model_that_failed_says_why_to_everyone_who_asks(models):
    with serving(models) as client:
        end = load(client, BROKEN)[-1]
        assert end["state"] == "failed"
        assert "hidden_act = 'tanhshrink'" in end["message"]
        answer = post(client, {"model": BROKEN, "text": "a"})
        assert problem(answer, 422, "unsupported-config")["detail"] == end["message"]
        listed = client.get("/api/models").json()["models"]
        assert {model["id"]: model["message"] for model in listed}[BROKEN] == end["message"]


@pytest.mark.parametrize(
    ("method", "path", "status", "slug"),
    [
        ("GET", "/nonsense", 404, "not-found"),
        ("GET", "/api/nonsense", 404, "not-found"),
        ("GET", "/api/traces", 405, "method-not-allowed"),
        ("DELETE", "/api/models", 405, "method-not-allowed"),
        ("PUT", "/", 405, "method-not-allowed"),
        ("POST", "/static/css/atlas.css", 405, "method-not-allowed"),
        ("GET", "/{nothing}/{0}", 404, "not-found"),
        ("GET", "/static/nonsense.js", 404, "not-found"),
    ],
)
def test_an_address_that_is_none(client, method, path, status, slug):
    answer = client.request(method, path, headers={"content-type": "application/json"})
    body = problem(answer, status, slug)
    assert path in body["detail"]
    assert "/docs" in body["detail"]


@pytest.fixture
def mistaken(client, monkeypatch):
    """The address of something that raises what nobody expects."""

    def mistake(*_):
        raise ZeroDivisionError("secret")

    opened = trace(client, text=TEXT)
    monkeypatch.setattr(pair, "scale_in_words", mistake)
    return f"/api/traces/{opened['id']}/pair/encoder.self.0/0?query=0&key=0"


def test_a_mistake_of_ours_goes_to_the_log_alone(client, mistaken, caplog):
    with caplog.at_level(logging.ERROR):
        answer = client.get(mistaken)
    body = problem(answer, 500, "internal")
    assert "secret" not in answer.text
    assert "your text is still here" in body["detail"]
    assert answer.headers["content-security-policy"]
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


TEXTS = [
    "💩💩💩",
    "我说你倒是快点啊",
    "ሰላም ለሁሉም",
    "Karadžić",
    "i ⭢ j",
    "a … \u0010 b",
    "\u1112\u1161\u11ab",
    "המחיר הוא 25 שקל",
    "السعر 25 ريال",
    "e\u0301 a\u0308",
    "👩‍👩‍👧‍👦",
    "a" + " " * 100 + "b",
    "a\tb\nc\r\nd",
    "</script><img src=x onerror=alert(1)>",
    "{{7*7}}",
    "a",
    "\u202eabc\u202c",
    "\x00a",
    "\ufeffa",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("model", [BERT, LLAMA])
def test_texts_that_broke_others(client, model, text):
    answer = post(client, {"model": model, "text": text})
    if answer.json().get("type") == "urn:attention-atlas:too-long":
        answer = post(client, {"model": model, "text": text[: answer.json()["cut"]]})
    assert answer.status_code == 201, answer.text
    body = answer.json()
    for token in body["tokens"]:
        assert not {"Ġ", "▁", "##"} & {token["text"], token["text"][:1], token["text"][:2]}
        if token["span"] is not None:
            start, end = token["span"]
            assert 0 <= start < end <= len(text)
    site = body["sites"][-1]["site"]
    last = len(body["tokens"]) - 1
    for path in (f"pair/{site}/0?query={last}&key=0", "heads", f"attention/{site}/0?format=json"):
        assert client.get(f"/api/traces/{body['id']}/{path}").status_code == 200


def test_every_error_of_a_page_is_a_page_for_a_person(client):
    answer = client.get("/no<script>such", headers={"accept": "text/html,*/*;q=0.8"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "<script>such" not in answer.text
    assert "/no&lt;script&gt;such" in answer.text
    assert client.get("/api/nonsense", headers={"accept": "text/html"}).headers["content-type"] == (
        "application/problem+json"
    )


def test_an_unknown_field_of_one_side_of_a_comparison_is_named_with_those_there_are(client):
    sides = {"a": {"model": BERT, "text": "a"}, "b": {"model": BERT, "text": "a", "colour": "red"}}
    detail = problem(post(client, sides, "/api/compare"), 422, "bad-request")["detail"]
    assert detail.startswith("There is no field b colour here: there are model, text, ")
