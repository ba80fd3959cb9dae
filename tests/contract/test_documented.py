"""docs/api.md says what the API does: every route, every parameter, every field, and examples that run."""

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.schemas import RECORDABLES
from model import errors
from model.interventions import KINDS
from tests.serving import BART, BERT, CAUSAL, LLAMA, MASKED, MUTE, TEXT, WILD, trace

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "api.md").read_text("utf-8")
HEADING = re.compile(r"^### `(GET|POST) (\S+)`$", re.MULTILINE)
FIELD = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def sections():
    """The text under each heading that names a route."""
    parts = HEADING.split(DOCUMENT)[1:]
    return {
        f"{method} {path}": re.split(r"^##? ", text, maxsplit=1, flags=re.MULTILINE)[0]
        for method, path, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def fields(route, table="Field"):
    """The first column of a route's table."""
    text = sections()[route]
    start = text.find(f"| {table} |")
    return set(FIELD.findall(text[start:].split("\n\n")[0])) if start >= 0 else set()


def leaves(value, path=""):
    """The paths of everything in a JSON value that is no object and no list of objects."""
    if isinstance(value, dict):
        return {
            found for name, inner in value.items() for found in leaves(inner, f"{path}.{name}".lstrip("."))
        }
    if isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        return {found for inner in value for found in leaves(inner, f"{path}[]")}
    return {path}


def known(*answers):
    """The leaves of several answers of a route; what is null in one may not be in another."""
    found = set().union(*map(leaves, answers))
    return {path for path in found if not any(other.startswith((f"{path}.", f"{path}[]")) for other in found)}


def documented(path):
    """The heading of a path: the labs, which the list of labs describes, share one."""
    return re.sub(r"^/api/labs/.+", "/api/labs/{name}", path)


def test_every_route_is_documented_and_every_documented_route_exists(client):
    paths = client.get("/openapi.json").json()["paths"]
    routes = {
        f"{method.upper()} {documented(path)}" for path, operations in paths.items() for method in operations
    }
    assert set(sections()) == routes


def test_every_parameter_is_documented(client):
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
            text = sections()[f"{method.upper()} {documented(path)}"]
            for parameter in operation.get("parameters", ()):
                name = parameter["name"]
                assert re.search(rf"`{name}`|`{name}=|[?&]{name}=|{{{name}}}", text + path), (path, name)


def test_every_field_of_a_request_is_documented(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert fields("POST /api/traces", "Request") == set(schemas["TraceRequest"]["properties"])
    for name, route in (("CompareRequest", "POST /api/compare"), ("LoadRequest", "POST /api/models/load")):
        for field in schemas[name]["properties"]:
            assert re.search(rf'`{field}`|"{field}"', sections()[route])


def test_the_fields_of_a_list_of_models(client):
    assert known(client.get("/api/models").json()) == fields("GET /api/models")


def test_the_fields_of_a_trace(client):
    answers = [
        trace(client, text=TEXT),
        trace(client, model=LLAMA, text="hello"),
        trace(client, model=MASKED, text="the [MASK]"),
        trace(client, model=WILD, ids=[1]),
        trace(client, model=BART, text=TEXT, target="the animal"),
    ]
    assert known(*answers) == fields("POST /api/traces")


@pytest.mark.parametrize(
    ("route", "query"),
    [
        ("GET /api/traces/{trace_id}/heads", {}),
        ("GET /api/traces/{trace_id}/attention/{site}/{head}", {"format": "json"}),
        ("GET /api/traces/{trace_id}/pair/{site}/{head}", {"query": 1, "key": 2}),
        ("GET /api/traces/{trace_id}/links/{group}", {"query": 1, "key": 2}),
        ("GET /healthz", {}),
        ("GET /readyz", {}),
    ],
)
def test_the_fields_of_an_answer(client, route, query):
    names = {
        "trace_id": trace(client, text=TEXT)["id"],
        "site": "encoder.self.0",
        "head": 0,
        "group": "encoder.self",
    }
    answer = client.get(route.removeprefix("GET ").format(**names), params=query)
    assert known(answer.json()) == fields(route)


def test_the_fields_of_a_comparison(client):
    pairs = [
        ({"model": BERT, "text": "the a"}, {"model": BERT, "text": "the a", "plan": CAUSAL}),
        ({"model": LLAMA, "text": "the a"}, {"model": LLAMA, "text": "the a"}),
        ({"model": BERT, "text": "the a"}, {"model": LLAMA, "text": "the a"}),
        ({"model": LLAMA, "ids": [1, 2]}, {"model": MUTE, "ids": [1, 2]}),
    ]
    answers = [client.post("/api/compare", json={"a": a, "b": b}).json() for a, b in pairs]
    assert known(*answers) == fields("POST /api/compare")


def examples():
    blocks = re.findall(r"```sh\n(.*?)```", "".join(sections().values()), re.DOTALL)
    return [line for block in blocks for line in re.split(r"\n(?=curl)", block.strip())]


def test_every_route_has_an_example():
    for route, text in sections().items():
        path = route.split(" ")[1].split("{")[0]
        assert re.search(rf"^curl .*localhost:8000{re.escape(path)}", text, re.MULTILINE), route


@pytest.mark.parametrize("example", examples())
def test_the_examples_run(client, example):
    """On small models in the place of the built-in ones."""
    small = example.replace('"minilm"', f'"{BERT}"').replace('"smollm2"', f'"{LLAMA}"')
    small = small.replace("$ID", trace(client, text=TEXT)["id"])
    words = shlex.split(small)
    (url,) = (word for word in words if word.startswith("localhost:8000"))
    address = urlsplit(f"http://{url}")
    asked = f"{address.path}?{address.query}"
    if "-d" in words:
        header = dict([words[words.index("-H") + 1].split(": ")])
        answer = client.post(asked, content=words[words.index("-d") + 1], headers=header)
    else:
        answer = client.get(asked)
    assert answer.status_code in {200, 201} or url.endswith("readyz"), answer.text


def test_every_kind_of_error_is_documented():
    listed = {
        kind: set(status.split(", "))
        for kind, status in re.findall(r"^\| `([\w-]+)` \| ([\d, ]+) \|", DOCUMENT, re.MULTILINE)
    }
    ours = {
        kind.slug: str(kind.status)
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.AtlasError) and kind is not errors.AtlasError
    }
    for slug, status in ours.items():
        assert status in listed[slug], slug
    source = "".join(file.read_text("utf-8") for file in (ROOT / "app").glob("*.py"))
    assert set(re.findall(r'problem\(\s*"([\w-]+)"', source)) <= set(listed)


def test_every_documented_step_of_a_plan_runs(client):
    steps = re.findall(r'^\| `(\{"kind".*?\})` \|', DOCUMENT, re.MULTILINE)
    assert {json.loads(step)["kind"] for step in steps} == set(KINDS)
    assert len(steps) == 21
    for step in steps:
        count = 2 if "[1, 1]" in step or "[0.5, 0.5]" in step else 5
        plan = [json.loads(step)]
        model = LLAMA if "base" in step or "from_layer" in step else BERT
        opened = trace(client, model=model, ids=[5] * count, plan=plan)
        assert opened["id"]


def test_every_word_of_what_can_be_recorded_is_documented(client):
    listed = re.findall(
        r"^\| `(\w+)` \| .*? \|$", DOCUMENT.split("| Recorded |")[1].split("\n\n")[0], re.MULTILINE
    )
    assert listed == list(RECORDABLES)


def test_the_fields_of_a_lab_are_documented(client):
    text = sections()["POST /api/labs/{name}"] + sections()["GET /api/labs"]
    listed = client.get("/api/labs").json()["labs"]
    answer = client.post("/api/labs/scaling", json={"samples": 100}).json()
    matrix = client.post("/api/labs/t5-buckets", json={}).json()["series"]
    for part in (listed[0], answer, answer["series"][0], answer["checks"][0], *matrix):
        for field in part:
            assert f"`{field}`" in text, field
