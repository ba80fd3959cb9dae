"""Labs over HTTP and on the command line: the same answer from both, progress, leaving, refusals in words."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi.testclient import TestClient

from app import cli_lab
from app.routes.labs import wants_stream
from app.services import limits
from app.services.labs import DISTURBED, LABS_WAITING, Labs
from model.errors import Busy, InputError
from model.labs import bench, catalogue, reading
from model.labs.bench import Bench, Cancelled
from model.labs.catalogue import LABS, Lab
from model.labs.parameters.base import Parameters
from model.labs.result import Axis, Chart, Check, Line, Result
from tests.serving import BERT, TEXT, events, load, problem, serving, write_models

ASKED = {"d_k": 16, "rule": "none", "samples": 500, "seed": 3}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with serving(tmp_path_factory.mktemp("empty")) as found:
        yield found


def test_every_lab_is_listed_and_described(client: TestClient) -> None:
    listed = {lab["name"]: lab for lab in client.get("/api/labs").json()["labs"]}
    paths = client.get("/openapi.json").json()["paths"]
    assert listed.keys() == LABS.keys()
    for name, lab in listed.items():
        assert lab["claims"]
        assert lab["question"].endswith("?")
        assert f"/api/labs/{name}" in paths
        for field in lab["parameters"]["properties"].values():
            assert field["description"], (name, field)
            assert "default" in field, (name, field)


def test_the_command_line_prints_what_the_api_answers(client: TestClient) -> None:
    answer = client.post("/api/labs/scaling", json=ASKED).json()
    options = [text for name, value in ASKED.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    done = subprocess.run(
        [sys.executable, "-c", "from app.cli import main; main()", "lab", "scaling", *options, "--json"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == answer
    assert answer["parameters"] | ASKED == answer["parameters"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"seed": "seven"}, "seed"), ({"d_k": 0}, "d_k"), ({"d_k": 1.5}, "d_k"), ({"rule": "twice"}, "rule"),
        ({"dk": 3}, "dk"), ({"factor": None}, "factor"), ({"seed": True}, "seed"),
    ],
)  # fmt: skip
def test_unusable_parameters_are_refused_by_name(
    client: TestClient, given: dict[str, Any], field: str
) -> None:
    body = problem(client.post("/api/labs/scaling", json=given), 422, "bad-request")
    assert body["field"] == field


def test_a_whole_number_is_read_however_it_is_written(client: TestClient) -> None:
    answer = client.post("/api/labs/scaling", json={"d_k": 16.0, "samples": 1e2})
    assert answer.json()["parameters"] | {"d_k": 16, "samples": 100} == answer.json()["parameters"]


@pytest.mark.parametrize("body", ["[]", "3", "null", '"{}"'])
def test_a_body_that_is_no_object_is_told_to_be_one(client: TestClient, body: str) -> None:
    answer = client.post("/api/labs/scaling", content=body, headers={"Content-Type": "application/json"})
    assert "send a JSON object" in problem(answer, 422, "bad-request")["detail"]


def test_an_empty_body_means_the_defaults(client: TestClient) -> None:
    answers = [
        client.post("/api/labs/archetypes", content=body, headers={"Content-Type": "application/json"})
        for body in ("", "{}")
    ]
    assert answers[0].status_code == 200
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize("path", ["/api/labs/scaling", "/api/traces", "/api/compare", "/api/models/load"])
def test_a_name_that_is_given_twice_is_refused_by_name(client: TestClient, path: str) -> None:
    body = '{"d_k": 8, "b": {"seed": 1, "seed": 2}}'
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    refused = problem(answer, 422, "bad-request")
    assert refused["field"] == "seed"
    assert "“seed” twice" in refused["detail"]


def test_the_command_line_refuses_in_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from app.cli import main; main()", "lab", "scaling", "--seed", "seven"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("attention-atlas: --seed cannot be used")
    assert done.stderr.count("\n") == 1


def test_an_unknown_lab_is_answered_with_those_there_are(client: TestClient) -> None:
    for answer in (client.post("/api/labs/alchemy", json={}), client.get("/api/labs/alchemy")):
        body = problem(answer, 404, "not-found")
        assert body["labs"] == list(LABS)
        assert body["detail"].startswith("There is no lab alchemy: there are attention-row, ")
        assert all(name in body["detail"] for name in LABS)


def test_a_lab_that_there_is_takes_post_only(client: TestClient) -> None:
    answer = client.get("/api/labs/scaling")
    problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "POST"


def test_an_unknown_parameter_is_answered_with_those_there_are(client: TestClient) -> None:
    body = problem(client.post("/api/labs/scaling", json={"dk": 3}), 422, "bad-request")
    assert body["detail"] == "There is no field dk here: there are d_k, rule, factor, samples, seed."
    assert body["field"] == "dk"


def test_a_model_that_is_not_loaded_says_how_to_load_it(client: TestClient) -> None:
    body = problem(client.post("/api/labs/order", json={"model": "minilm"}), 503, "model-not-ready")
    assert "POST /api/models/load" in body["detail"]


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from app.cli import main; main()", "lab", *arguments],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_line_names_the_labs_there_are() -> None:
    done = cli("alchemy")
    assert done.returncode == 1
    assert done.stderr.startswith("attention-atlas: There is no lab alchemy: there are attention-row, ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("holds", "code"), [(True, None), (False, cli_lab.FAILS)])
def test_a_check_that_fails_is_told_by_the_exit_status(
    counting: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], holds: bool, code: int
) -> None:
    if not holds:
        monkeypatch.setattr(Check, "holds", property(lambda _self: False))
    if code is None:
        cli_lab._print(counting, {}, as_json=True)
    else:
        with pytest.raises(typer.Exit) as left:
            cli_lab._print(counting, {}, as_json=True)
        assert left.value.exit_code == code == 3
    assert json.loads(capsys.readouterr().out)["checks"][0]["holds"] is holds


def test_the_help_says_what_the_exit_status_means() -> None:
    for arguments in (["--help"], ["scaling", "--help"]):
        assert "Exits with 3 where a check fails" in " ".join(cli(*arguments).stdout.split())


class _Steps(Parameters):
    steps: int = 3


def _counting(parameters: Parameters, given: Bench) -> Result:
    assert isinstance(parameters, _Steps)
    for step in range(parameters.steps):
        so_far = Result([Chart("c", "t", Axis("x"), Axis("y"), [Line("l", [0.0], [float(step)])])])
        given.report(step / parameters.steps, f"step {step}", so_far)
    if parameters.steps == 0:
        raise InputError("Steps cannot be none: ask for one at least.")
    return Result(checks=[Check("steps", parameters.steps, parameters.steps)])


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Lab:
    module = type("Module", (), {"run": staticmethod(_counting)})
    monkeypatch.setattr(catalogue, "import_module", lambda _name: module)
    return Lab("counting", "How many?", ("C0",), _Steps, "counting", lengthy=True)


def _no_model(_model_id: str) -> Any:
    raise AssertionError


def test_progress_comes_first_and_the_answer_last(counting: Lab) -> None:
    told = list(Labs(_no_model).follow(counting, _Steps(), threading.Event()))
    assert [event["words"] for event in told] == ["step 0", "step 1", "step 2", "done"]
    drawn = [event["result"]["series"] for event in told[:-1]]  # type: ignore[index]
    assert [series[0]["lines"][0]["y"] for series in drawn] == [[0.0], [1.0], [2.0]]
    assert told[-1]["result"] == Labs(_no_model).run(counting, _Steps())


def test_who_has_to_wait_is_told_once_before_anything_else(counting: Lab) -> None:
    labs = Labs(_no_model)
    with labs.lane(counting).take():
        followed = labs.follow(counting, _Steps(steps=1), threading.Event())
        first = next(followed)
        time.sleep(3 * limits.ASK_SECONDS)
    assert first == {"fraction": 0.0, "words": "waiting for another experiment to end", "result": None}
    assert [event["words"] for event in followed] == ["step 0", "done"]


def test_who_leaves_while_waiting_gives_the_place_back(counting: Lab) -> None:
    labs, left = Labs(_no_model), threading.Event()
    with labs.lane(counting).take():
        followed = labs.follow(counting, _Steps(steps=1), left)
        next(followed)
        left.set()
        assert list(followed) == []


def test_who_comes_when_too_many_wait_is_refused_at_once_and_the_others_are_answered(counting: Lab) -> None:
    labs = Labs(_no_model)
    with labs.lane(counting).take():
        waiting = [labs.follow(counting, _Steps(steps=1), threading.Event()) for _ in range(LABS_WAITING)]
        with pytest.raises(Busy, match="other people's experiments"):
            labs.follow(counting, _Steps(steps=1), threading.Event())
    assert [list(told)[-1]["words"] for told in waiting] == ["done"] * LABS_WAITING
    assert list(labs.follow(counting, _Steps(steps=1), threading.Event()))[-1]["words"] == "done"


def test_a_quick_lab_does_not_wait_for_a_lengthy_one(counting: Lab) -> None:
    labs = Labs(_no_model)
    with labs.lane(counting).take():
        told = list(labs.follow(replace(counting, lengthy=False), _Steps(steps=1), threading.Event()))
    assert [event["words"] for event in told] == ["step 0", "done"]


@pytest.mark.parametrize(
    ("clocks", "beside", "noted"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_lab_that_measures_time_says_where_another_ran_meanwhile(
    counting: Lab, clocks: bool, beside: bool, noted: bool
) -> None:
    labs, left = Labs(_no_model), threading.Event()
    other = labs.follow(replace(counting, lengthy=False), _Steps(steps=10**7), left) if beside else iter(())
    next(other, None)
    found = list(labs.follow(replace(counting, clocks=clocks), _Steps(steps=1), threading.Event()))[-1]
    left.set()
    assert (DISTURBED in found["result"]["notes"]) is noted  # type: ignore[index]


def test_who_leaves_stops_it_and_the_next_can_begin(counting: Lab) -> None:
    labs, left = Labs(_no_model), threading.Event()
    left.set()
    assert list(labs.follow(counting, _Steps(steps=10**6), left)) == []
    assert labs.run(counting, _Steps(steps=1))["checks"]


def test_an_error_reaches_whoever_follows(counting: Lab) -> None:
    with pytest.raises(InputError, match="one at least"):
        list(Labs(_no_model).follow(counting, _Steps(steps=0), threading.Event()))


def test_a_stream_ends_with_the_answer_of_the_plain_request(client: TestClient) -> None:
    answer = client.post("/api/labs/scaling", json=ASKED, headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert events(answer)[-1]["result"] == client.post("/api/labs/scaling", json=ASKED).json()


@pytest.mark.parametrize(("accept", "streams"), [
    ("text/event-stream", True), ("application/json, Text/Event-Stream;q=0.5", True), ("", False),
    ("text/event-stream;q=0", False), ("text/event-stream; q=0.000, */*", False), ("*/*", False),
    ("text/event-streams", False),
])  # fmt: skip
def test_what_an_accept_header_asks_for(accept: str, streams: bool) -> None:
    assert wants_stream(accept) is streams


def test_a_check_holds_within_its_tolerance_only() -> None:
    assert Check("a", 1.0, 1.1, 0.2).holds
    assert not Check("a", 1.0, 1.3, 0.2).holds
    assert not Check("a", 1.0, float("nan"), 1e9).holds
    assert Check("a", 1.0, 0.2, relation="<=").holds
    assert not Check("a", 1.0, 1.2, 0.1, "<=").holds
    assert not Check("a", 1.0, 0.8, 0.1, ">=").holds
    endless = Check("a", float("inf"), float("inf")).as_json()
    assert (endless["expected"], endless["measured"], endless["holds"]) == (None, None, True)


def test_without_a_server_a_bench_has_no_models_and_nobody_listens() -> None:
    with pytest.raises(LookupError):
        bench.Bench().model("minilm")
    bench.Bench().report(0.5, "half", None)
    assert issubclass(Cancelled, Exception)


def test_what_the_tokenizer_tells_of_each_text_joins_the_notes(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    said = "2 pieces of the text are unknown to this model's vocabulary: ☃, ☄ became [UNK]."
    texts: dict[str, dict[str, Any]] = {
        "stream": {"text": "the ☃ and ☄"}, "heads": {"text": "the ☃ and ☄", "layer": 0, "head": 0},
        "order": {"text": "the ☃ and ☄", "other": "and ☃ the ☄"}, "block": {"text": "the ☃ and ☄"},
    }  # fmt: skip
    with serving(write_models(tmp_path_factory.mktemp("notices"))) as client:
        load(client, BERT)
        for lab, given in texts.items():
            answer = client.post(f"/api/labs/{lab}", json={"model": BERT, **given})
            assert answer.json()["notes"].count(said) == 1, (lab, answer.text)
            plain = {
                name: "the animal" if name in ("text", "other") else value for name, value in given.items()
            }
            assert "unknown" not in client.post(f"/api/labs/{lab}", json={"model": BERT, **plain}).text


def test_a_long_text_is_refused_before_it_runs_with_the_smaller_of_both_limits(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(write_models(tmp_path_factory.mktemp("long"))) as client:
        load(client, BERT)
        monkeypatch.setattr(reading, "run_ids", pytest.fail)
        for lab, text in (("attention-row", "the " * 200), ("stream", "the " * 200)):
            answer = client.post(f"/api/labs/{lab}", json={"model": BERT, "text": text, "layer": 0})
            told = problem(answer, 422, "too-long")
            limit = told["limit"]
            assert told["tokens"] > limit
            assert f"{BERT} was made for {limit}" in told["detail"]
            fits = client.post("/api/traces", json={"model": BERT, "text": text[: told["cut"]]})
            assert len(fits.json()["tokens"]) == limit


def test_limits_are_the_last_places_there_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One more than each is refused, and the limit itself is not."""
    of_model = {"model": BERT, "text": TEXT}
    asked: dict[str, dict[str, Any]] = {
        "attention-row": {**of_model, "layer": 0, "head": 0, "query": 0, "key": 0},
        "heads": {**of_model, "layer": 0, "head": 0},
        "block": {**of_model, "layer": 0},
        "alibi": {"heads": 4, "head": 0},
    }
    with serving(write_models(tmp_path_factory.mktemp("limits"))) as client:
        load(client, BERT)
        _hold(client, asked)


def _hold(client: TestClient, asked: dict[str, dict[str, Any]]) -> None:
    for lab, given in asked.items():
        limits = client.post(f"/api/labs/{lab}", json=given).json()["limits"]
        assert set(limits) == set(given) & {"layer", "head", "query", "key"}
        for name, most in limits.items():
            assert client.post(f"/api/labs/{lab}", json={**given, name: most}).status_code == 200
            beyond = client.post(f"/api/labs/{lab}", json={**given, name: most + 1})
            # ALiBi draws its last head instead, and says so.
            assert beyond.status_code == 422 or beyond.json()["notes"], (lab, name)
