"""The API's description tells the truth: labs answer in the shape it shows, and problems are as it says."""

import pytest

from app.lab_schemas import Problem, answer_of
from model.labs.catalogue import LABS
from tests.serving import BERT, LLAMA, TEXT

# The defaults of these train or measure for seconds; they answer in the same shape with less to do.
QUICK = {
    "depth": {"depth": 4, "width": 16}, "ffn-forms": {"width": 8, "steps": 2}, "gradients": {"distance": 4},
    "past-length": {"steps": 2}, "recall": {"steps": 1}, "recurrence-time": {"length": 4, "rounds": 4},
}  # fmt: skip
PLACES = {"layer", "head", "query", "key"}


def asked(lab):
    """Parameters that the models of the tests can take."""
    fields = lab.parameters.model_fields
    given = dict(QUICK.get(lab.name, {}))
    given = {name: value for name, value in given.items() if name in fields}
    if "model" in fields:
        given |= dict.fromkeys(PLACES & fields.keys(), 0)
        given["model"] = LLAMA if lab.name in {"rope-model", "facts", "neurons"} else BERT
        texts = {
            "text": TEXT,
            "prompt": TEXT,
            "first": TEXT,
            "second": TEXT,
            "other": TEXT,
            "word": "animals",
        }
        given |= {name: text for name, text in texts.items() if name in fields}
    return given


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.name)
def test_a_lab_answers_in_the_shape_that_is_described(client, lab):
    answer = client.post(f"/api/labs/{lab.name}", json=asked(lab))
    assert answer.status_code in (200, 422), answer.text
    shape = answer_of(lab) if answer.status_code == 200 else Problem
    shape.model_validate_json(answer.text)
    assert answer.status_code == 200 or "model" in lab.parameters.model_fields


def test_most_labs_on_models_answer_here_too(client):
    on_models = [lab for lab in LABS.values() if "model" in lab.parameters.model_fields]
    answered = [
        lab for lab in on_models if client.post(f"/api/labs/{lab.name}", json=asked(lab)).status_code == 200
    ]
    assert len(answered) > len(on_models) / 2


def test_every_operation_says_what_it_answers(client):
    document = client.get("/openapi.json").json()
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            expected = {"404", "422", "503", "default"} | (
                {"400", "413", "415"} if method == "post" else set()
            )
            assert expected <= answers.keys(), path
            assert all(answers[status]["content"] == problem for status in expected), path


def test_each_lab_is_described_with_its_own_parameters_and_as_a_stream(client):
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for name, lab in LABS.items():
        content = document["paths"][f"/api/labs/{name}"]["post"]["responses"]["200"]["content"]
        assert content.keys() == {"application/json", "text/event-stream"}
        answer = schemas[content["application/json"]["schema"]["$ref"].rpartition("/")[2]]
        assert answer["properties"]["parameters"]["$ref"].endswith(f"/{lab.parameters.__name__}")
        assert answer["properties"].keys() >= {"series", "checks", "facts", "notes", "limits"}


@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        ("/api/traces", "{", "application/json", 400), ("/api/labs/nothing", "{}", "application/json", 404),
        ("/api/compare", "{}", "application/json", 422), ("/api/models/load", "{}", "text/plain", 415),
        ("/api/labs/scaling", '{"seed": "' + "x" * 8_000_000 + '"}', "application/json", 413),
        ("/api/labs/order", '{"model": "minilm"}', "application/json", 503),
    ],
)  # fmt: skip
def test_problems_have_the_shape_that_is_described(client, path, body, kind, status):
    answer = client.post(path, content=body, headers={"content-type": kind})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    Problem.model_validate_json(answer.text)
