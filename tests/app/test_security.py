"""No web page a user visits can drive or read this server."""

import asyncio
import socket

import pytest
from starlette.responses import PlainTextResponse

from app.security import HEADERS, MAX_BODY, Guard
from tests.serving import BASE, BERT, app_of, problem, serving, trace

JSON = {"content-type": "application/json"}
BODY = b'{"model": "%s", "text": "a"}' % BERT.encode()


def ask(app, headers, method="GET", path="/healthz", chunks=()):
    """Asks an ASGI application with exactly these headers; returns status, headers and body."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8000),
    }
    waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})
    sent = []

    async def receive():
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8000",
        "LocalHost:8000",
        "127.0.0.1",
        "127.0.0.1:9",
        "[::1]",
        "[::1]:8000",
        "localhost:",
    ],
)
def test_names_of_this_machine_are_answered(client, host):
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "evil.localhost",
        "localhost@evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.7:8000",
        "127.0.0.2",
        "0.0.0.0",
        "[::2]:8000",
        "[::1",
        "::1",
        "localhost.",
        "",
        " ",
        ":8000",
        "*",
        "\xe9",
    ],
)
@pytest.mark.parametrize("path", ["/healthz", "/", "/api/models", "/static/css/atlas.css"])
def test_any_other_name_is_not(client, host, path):
    status, headers, body = ask(app_of(client), [("host", host)], path=path)
    assert status == 421
    assert headers["content-type"] == "application/problem+json"
    assert b"ATLAS_ALLOWED_HOSTS" in body
    assert headers["content-security-policy"] == HEADERS["Content-Security-Policy"]


def test_a_request_without_a_name_is_refused(client):
    status, _, body = ask(app_of(client), [])
    assert status == 421
    assert b"(none)" in body


def test_names_can_be_added(models):
    with serving(models, allowed_hosts=("Atlas.Example.org",)) as client:
        assert client.get("/healthz", headers={"host": "atlas.example.ORG:443"}).status_code == 200
        problem(client.get("/healthz", headers={"host": "localhost"}), 421, "refused")
    with serving(models, allowed_hosts=("*",)) as client:
        assert client.get("/healthz", headers={"host": "anything"}).status_code == 200


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "10.0.0.7"])
def test_bound_beyond_loopback_every_number_passes_and_no_stranger_name(models, bound):
    with serving(models, host=bound) as client:
        for host in ("10.0.0.7:8000", "192.168.1.5", "[fe80::1]:8000", "localhost", socket.gethostname()):
            assert client.get("/healthz", headers={"host": host}).status_code == 200, host
        for host in (
            "evil.example",
            "10.0.0.7.evil.example",
            "0x7f.1",
            "2130706433",
            "[fe80::1.evil.example]",
            "",
        ):
            assert ask(app_of(client), [("host", host)])[0] == 421, host


@pytest.mark.parametrize("origin", [None, BASE, BASE.upper(), "https://localhost:8000"])
def test_the_servers_own_page_and_scripts_may_post(client, origin):
    headers = JSON | ({} if origin is None else {"origin": origin})
    assert client.post("/api/traces", content=BODY, headers=headers).status_code == 201


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://localhost",
        "http://localhost:8001",
        "http://127.0.0.1:8000",
        "http://evil.example",
        "http://localhost:8000.evil.example",
        "http://localhost:8000@evil.example",
        "http://evil.example/localhost:8000",
        "file://",
        "http://[",
        "localhost:8000",
    ],
)
@pytest.mark.parametrize("path", ["/api/traces", "/api/compare", "/api/models/load", "/nonsense"])
def test_another_sites_page_may_not(client, origin, path):
    answer = client.post(path, content=BODY, headers=JSON | {"origin": origin})
    assert "another site's page" in problem(answer, 403, "refused")["detail"]


@pytest.mark.parametrize(
    ("site", "status"),
    [("same-origin", 201), ("none", 201), ("same-site", 403), ("cross-site", 403), ("x", 403)],
)
def test_what_the_browser_says_of_the_site_counts(client, site, status):
    answer = client.post("/api/traces", content=BODY, headers=JSON | {"sec-fetch-site": site})
    assert answer.status_code == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_every_method_that_may_change_something_is_checked(client, method):
    answer = client.request(method, "/api/traces", headers=JSON | {"origin": "http://evil.example"})
    problem(answer, 403, "refused")


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "text/json",
    ],
)
def test_a_body_that_a_form_could_send_is_refused(client, kind):
    answer = client.post("/api/traces", content=BODY, headers={} if kind is None else {"content-type": kind})
    assert "Content-Type: application/json" in problem(answer, 415, "refused")["detail"]


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/json;charset=UTF-8"]
)
def test_json_is_json_however_it_is_written(client, kind):
    assert client.post("/api/traces", content=BODY, headers={"content-type": kind}).status_code == 201


OWN = [("host", "localhost:8000"), ("content-type", "application/json")]


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "1" * 5000, "0" * 30 + str(MAX_BODY + 1)])
def test_a_body_that_is_announced_too_large_is_not_read(client, length):
    status, _, body = ask(app_of(client), [*OWN, ("content-length", length)], "POST", "/api/traces")
    assert status == 413
    assert b"too-large" in body
    assert b"8 MB" in body


@pytest.mark.parametrize("announced", [[], [("content-length", "5")], [("content-length", "\xb2")]])
def test_a_body_that_grows_too_large_is_cut_off(client, announced):
    headers = [*OWN, *announced]
    chunks = [b" " * (MAX_BODY // 2)] * 3
    status, found, body = ask(app_of(client), headers, "POST", "/api/traces", chunks)
    assert status == 413
    assert b"urn:attention-atlas:too-large" in body
    assert found["content-security-policy"]


def test_the_largest_body_is_read(client):
    content = BODY + b" " * (MAX_BODY - len(BODY))
    assert client.post("/api/traces", content=content, headers=JSON).status_code == 201


def test_every_answer_carries_the_policy(client):
    opened = trace(client, text="a")
    answers = [
        *(
            client.get(path)
            for path in ("/", "/docs", "/healthz", "/readyz", "/api/models", "/openapi.json", "/nonsense")
        ),
        client.get("/static/css/atlas.css"),
        client.get("/static/vendor/plotly.min.js"),
        client.get(f"/api/traces/{opened['id']}/overview/encoder.self"),
        client.get(f"/api/traces/{'0' * 32}/heads"),
        client.post("/api/traces", content=b"{", headers=JSON),
        client.post("/api/traces", content=BODY),
        client.post("/api/models/load", json={"model": BERT}),
        client.request("OPTIONS", "/api/traces", headers={"origin": "http://evil.example"}),
    ]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, answer.url
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_the_policy_lets_nothing_run_but_our_own_files():
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert policy.get("script-src", "'self'") == "'self'"
    assert policy["style-src"] == "'self'"
    for part in ("object-src", "base-uri", "frame-ancestors", "form-action"):
        assert policy[part] == "'none'"
    assert not any("unsafe-inline" in value for name, value in policy.items() if name != "style-src-attr")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pyproject.toml",
        "/static/%2e%2e/pyproject.toml",
        "/static/..%2fpyproject.toml",
        "/static/%2e%2e%2f%2e%2e%2fetc/passwd",
        "/static//etc/passwd",
        "/static/js/../../app/main.py",
        "/static/..\\..\\pyproject.toml",
        "/static/%00",
        "/static/" + "a" * 5000,
        "/static/",
        "/static/js",
        "/static",
        "/templates/base.html",
        "/app/main.py",
    ],
)
def test_no_address_leads_out_of_the_static_files(client, path):
    status, _, body = ask(app_of(client), [("host", "localhost")], path=path)
    assert status in {307, 404}
    assert b"root:" not in body
    assert b"[project]" not in body


def test_reading_changes_nothing(client):
    before = client.get("/api/models").json()
    store = app_of(client).state.services.engine()._store
    held = list(store._entries)
    opened = trace(client, text="a")
    paths = ["/", "/docs", "/readyz", "/api/models", f"/api/traces/{opened['id']}/heads", "/api/models/load"]
    paths += [f"/api/traces?model={BERT}&text=it", f"/api/compare?a={BERT}", "/api/models?model=minilm"]
    for path in paths:
        client.get(path)
        client.head(path)
    assert client.get("/api/models").json() == before
    assert set(store._entries) <= {*held, opened["id"]}


def test_what_goes_wrong_after_the_answer_began_is_not_answered_twice():
    async def breaks(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(Guard(breaks, ["localhost"]), [("host", "localhost")])


def test_what_is_not_http_passes():
    asked = []

    async def inner(scope, receive, send):
        asked.append(scope["type"])

    asyncio.run(Guard(inner, [])({"type": "lifespan"}, None, None))
    assert asked == ["lifespan"]
    assert ask(Guard(PlainTextResponse("here"), ["a"]), [("host", "a")])[2] == b"here"
