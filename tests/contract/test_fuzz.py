"""Whatever is sent: an answer or a problem in one sentence, never a failure of the server."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from app.schemas import RECORDABLES
from tests.serving import BART, BERT, LLAMA, MASKED, T5, TEXT, WHISPER, trace

QUICK = settings(
    max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

# Every code point, halves of surrogate pairs included: JSON can carry them.
text = st.text(st.characters(), max_size=12)
number = st.integers() | st.floats() | st.sampled_from([0, 1, -1, 2**31, 2**63, 1e308, 0.5])
plain = st.none() | st.booleans() | number | text
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)


def mostly(good):
    """What fits, and now and then anything: one misfit in an input that is fine otherwise goes deepest."""
    return st.integers(0, 19).flatmap(lambda n: anything if n == 19 else good)


index = mostly(st.integers(0, 9))
targets = {
    "sites": mostly(
        st.none()
        | st.sampled_from(
            ["*", "*.self.*", "encoder.*", "encoder.self.1", "[", "decoder.self.0", "decoder.cross.*"]
        )
    ),
    "heads": mostly(st.none() | st.lists(st.integers(0, 6), max_size=3)),
}
name = st.sampled_from(["bidirectional", "causal", "anticausal"])
cells = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=n, max_size=n)
)
rule = (
    st.fixed_dictionaries({"name": mostly(name)})
    | st.fixed_dictionaries({"name": st.just("window"), "left": index, "right": index})
    | st.fixed_dictionaries({"name": st.just("prefix"), "length": index})
    | st.fixed_dictionaries({"name": st.just("custom"), "allow": mostly(cells)})
)
scales = st.sampled_from(["own", "none", "inv", "inv_sqrt"])
step = (
    st.fixed_dictionaries({"kind": st.just("set_mask"), "rule": mostly(rule)}, optional=targets)
    | st.fixed_dictionaries({"kind": st.just("block"), "query": index, "key": index}, optional=targets)
    | st.fixed_dictionaries(
        {"kind": st.just("set_scale")}, optional={"rule": mostly(scales), "times": mostly(number), **targets}
    )
    | st.fixed_dictionaries(
        {"kind": st.just("set_position")},
        optional={
            "mode": mostly(st.sampled_from(["own", "off", "shuffle", "reverse", "shift"])),
            "by": mostly(st.integers(-9, 50)),
            "seed": index,
            "base": mostly(number),
            "from_layer": index,
            "sites": targets["sites"],
        },
    )
    | st.fixed_dictionaries(
        {"kind": st.just("ablate_head")},
        optional={"mode": mostly(st.sampled_from(["zero", "mean", "uniform"])), **targets},
    )
    | st.fixed_dictionaries({"kind": st.just("set_attention"), "weights": mostly(cells)}, optional=targets)
    | st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["drop_sublayer", "drop_residual", "drop_norm"]),
            "sublayer": mostly(st.sampled_from(["attention", "cross", "ffn"])),
        },
        optional={"sites": targets["sites"]},
    )
)
plan = mostly(st.lists(mostly(step), max_size=3))
model = st.sampled_from([BERT, MASKED, LLAMA, BART])
words = st.sampled_from([TEXT, "the [MASK] did it", "a", "hello hi"])
recorded = mostly(st.lists(st.sampled_from(RECORDABLES), max_size=3))
good = st.fixed_dictionaries({"model": model, "text": words}, optional={"plan": plan, "record": recorded}) | (
    st.fixed_dictionaries({"model": st.just(BART), "text": words, "target": words}, optional={"plan": plan})
)
request = st.fixed_dictionaries(
    {"model": mostly(model | st.sampled_from([T5, WHISPER, "nonsense", "local:tiny/", "org/name"]))},
    optional={
        "text": mostly(words | text),
        "text_pair": mostly(words | text),
        "ids": mostly(st.lists(st.integers(0, 24), max_size=50)),
        "plan": plan,
        "record": recorded,
        "target": mostly(words | text),
        "target_ids": mostly(st.lists(st.integers(0, 24), max_size=50)),
        "audio": mostly(st.binary(max_size=60).map(lambda data: base64.b64encode(data).decode())),
    },
)


def check(answer):
    event(f"{answer.status_code} {answer.json().get('type', '') if answer.status_code >= 400 else ''}")
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        body = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert body["detail"].endswith(".")
        assert "Traceback" not in answer.text
        assert body["status"] == answer.status_code
    else:
        json.loads(answer.content, parse_constant=pytest.fail)
    return answer


def post(client, path, body):
    return check(client.post(path, content=json.dumps(body), headers={"content-type": "application/json"}))


@QUICK
@given(body=request | anything)
def test_any_trace(client, body):
    post(client, "/api/traces", body)


@QUICK
@given(body=good)
def test_any_plan(client, body):
    post(client, "/api/traces", body)


@QUICK
@given(a=mostly(good), b=good, same=st.booleans(), by=mostly(st.sampled_from(["token", "word"])))
def test_any_comparison(client, a, b, same, by):
    if same and isinstance(a, dict):
        b["text"] = a.get("text", "a")
    post(client, "/api/compare", {"a": a, "b": b, "by": by})


@QUICK
@given(body=st.fixed_dictionaries({"model": text | anything}, optional={"revision": text | anything}))
def test_any_load(client, body):
    if not isinstance(body["model"], str) or body["model"] not in {"minilm", "smollm2"}:
        post(client, "/api/models/load", body)


@QUICK
@given(content=st.binary(max_size=200))
def test_any_bytes(client, content):
    for path in ("/api/traces", "/api/compare", "/api/models/load"):
        check(client.post(path, content=content, headers={"content-type": "application/json"}))


# No half pairs here: an address is UTF-8.
sendable = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
group = st.sampled_from(["encoder.self", "encoder.self", "decoder.self", "decoder.cross", "encoder.cross"])
site = st.sampled_from(["encoder.self.0", "encoder.self.2", "encoder.self.3", "decoder.cross.1"])
head = st.sampled_from(["0", "2", "4", "5", "-1"])
VIEWS = {
    "heads": [],
    "overview": [group],
    "links": [group],
    "attention": [site, head],
    "pair": [site, head],
}
half_open = st.sampled_from(["0:3", "2:3", "0:1", "0:9", "7"])
queries = {
    "query": st.sampled_from(["0", "7", "8"]),
    "key": st.sampled_from(["0", "3", "9"]),
    "layers": half_open,
    "size": st.sampled_from(["1", "32", "129"]),
    "stage": st.sampled_from(["weights", "raw", "masked", "mask"]),
    "rows": half_open,
    "cols": half_open,
    "max": st.sampled_from(["1", "3"]),
    "pool": st.sampled_from(["max", "mean"]),
    "format": st.sampled_from(["npy", "json"]),
}
always = {name: queries.pop(name) for name in ("query", "key")}
questions = st.sampled_from(sorted(VIEWS)).flatmap(
    lambda view: st.tuples(
        st.tuples(st.just(view), *VIEWS[view]), st.fixed_dictionaries(always, optional=queries)
    )
)


@QUICK
@given(question=questions, beside=st.booleans())
def test_any_question_about_a_trace(client, question, beside):
    parts, query = question
    opened = trace(client, model=BART, text=TEXT, target="did it") if beside else trace(client, text=TEXT)
    path = "/".join(quote(part, safe="") for part in [opened["id"], *parts])
    answer = client.get(f"/api/traces/{path}", params=query)
    event(f"{parts[0]} {answer.status_code}")
    if answer.headers["content-type"] != "application/x-npy":
        check(answer)


@QUICK
@given(path=sendable, accepts=st.sampled_from(["text/html", "*/*"]))
def test_any_address(client, path, accepts):
    for start in ("/", "/static/", "/api/", "/api/traces/"):
        answer = client.get(
            start + quote(path, safe="/.%"), headers={"accept": accepts}, follow_redirects=False
        )
        assert answer.status_code < 500 or answer.json() == {"state": "minilm absent"}


values = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30)


@QUICK
@given(
    headers=st.dictionaries(
        st.sampled_from(
            ["host", "origin", "content-type", "sec-fetch-site", "accept", "accept-encoding", "if-none-match"]
        ),
        values,
        max_size=4,
    ),
    method=st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", "PUT", "TRACE"]),
)
def test_any_headers(client, headers, method):
    sent = {name: value.strip().encode("latin-1") for name, value in headers.items()}
    answer = client.request(method, "/api/models", headers=sent)
    assert answer.status_code < 500, answer.text
    assert answer.headers["content-security-policy"]


def operations(client):
    document = client.get("/openapi.json").json()
    return [
        (path, operation)
        for path, found in document["paths"].items()
        for method, operation in found.items()
        if method == "get"
    ]


def likely(schema):
    """Values of the kind a parameter declares, and some that are not."""
    options = [anything.map(str).filter(lambda value: value.isprintable())]
    for one in schema.get("anyOf", [schema]):
        if "enum" in one:
            options.append(st.sampled_from(one["enum"]))
        elif one.get("type") == "integer":
            options.append(st.integers(one.get("minimum", 0) - 1, one.get("maximum", 50) + 1).map(str))
        elif one.get("type") == "string":
            options.append(st.sampled_from(["0:1", "1:3", "encoder.self", "encoder.self.1"]))
    return st.one_of(options)


@QUICK
@given(data=st.data())
def test_every_operation_keeps_to_its_own_description(client, data):
    path, operation = data.draw(st.sampled_from(operations(client)))
    opened = trace(client, text=TEXT)
    query = {}
    for parameter in operation.get("parameters", ()):
        found = data.draw(likely(parameter["schema"]), label=parameter["name"])
        if parameter["name"] == "trace_id":
            found = opened["id"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(found, safe=""))
        elif parameter["required"] or data.draw(st.booleans()):
            query[parameter["name"]] = found
    answer = client.get(path, params=query)
    assert answer.status_code < 500 or path == "/readyz", answer.text
