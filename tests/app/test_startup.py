"""The server answers before torch is there, and says what it is doing until it can do more."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import app.main
from app.deps import Services
from app.services import start
from model.errors import NotReady
from model.interventions import KINDS
from tests.serving import (
    BERT,
    BROKEN,
    LLAMA,
    TEXT,
    app_of,
    events,
    load,
    problem,
    serving,
    settings,
    trace,
)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30
PROGRAM = """
import sys
from app.main import create_app
from app.settings import Settings
from fastapi.testclient import TestClient

app = create_app(Settings(preload=()))
client = TestClient(app, base_url="http://localhost")  # not entered: nothing is started
assert client.get("/healthz").json() == {"status": "ok"}
assert client.get("/api/models").status_code == 200
assert client.get("/").status_code == 200
assert client.get("/readyz").status_code == 503
sys.exit("torch is loaded" if "torch" in sys.modules else 0)
"""


def test_the_app_answers_without_torch():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def held(monkeypatch):
    """The engine arrives when the test says so."""
    go, real = threading.Event(), start.start_engine

    def slow(*args):
        assert go.wait(PATIENCE)
        return real(*args)

    monkeypatch.setattr(start, "start_engine", slow)
    yield go
    go.set()


def test_what_needs_no_engine_is_answered_before_there_is_one(models, held):
    with serving(models) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/").status_code == 200
        listed = client.get("/api/models").json()
        assert listed["device"] is None
        held.set()
        load(client, BERT)
        assert trace(client, text=TEXT)["device"] == "cpu"
        assert client.get("/api/models").json()["device"] == "cpu"


def test_a_request_waits_for_the_engine_a_while(models, held, monkeypatch):
    monkeypatch.setattr("app.deps.IMPORT_SECONDS", 0.01)
    with serving(models) as client:
        answer = client.post("/api/traces", json={"model": BERT, "text": TEXT})
        assert "try again in a moment" in problem(answer, 503, "model-not-ready")["detail"]
        assert client.get("/healthz").status_code == 200
        held.set()
        app_of(client).state.services._arrived.wait(PATIENCE)
        load(client, BERT)
        assert trace(client, text=TEXT)["id"]


def test_an_engine_that_cannot_start_says_why(models, monkeypatch):
    def fail(*_):
        raise ValueError("this machine has no cuda device that torch can use")

    monkeypatch.setattr(start, "start_engine", fail)
    with serving(models) as client:
        answer = client.post("/api/traces", json={"model": BERT, "text": TEXT})
        assert "this machine has no cuda device" in problem(answer, 503, "model-not-ready")["detail"]
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/healthz").status_code == 200
        assert client.get("/api/models").status_code == 200


def test_services_without_an_engine(models):
    waiting = Services(settings(models), None)
    waiting.arrive(None, ImportError("no torch"))
    with pytest.raises(NotReady, match="no torch"):
        waiting.engine()


def test_ready_once_the_default_model_has_answered(models, monkeypatch):
    go, tried = threading.Event(), []
    real = start.load

    def slow(path, given):
        assert go.wait(PATIENCE)
        loaded = real(path, given)
        tried.append(path.name)
        return loaded

    monkeypatch.setattr(start, "load", slow)
    with serving(models, preload=(LLAMA, BERT)) as client:
        assert client.get("/api/models").json()["default"] == LLAMA
        while (state := client.get("/readyz").json()["state"]) != f"loading {LLAMA}":
            assert state in {f"{LLAMA} queued", f"{LLAMA} absent"}
            time.sleep(0.01)
        go.set()
        load(client, LLAMA)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"state": "ready"})
        load(client, BERT)
        assert tried == ["llama", "bert"]


def test_a_default_model_that_failed_is_not_ready(models):
    with serving(models, preload=(BROKEN,)) as client:
        load(client, BROKEN)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"state": f"{BROKEN} failed"})


def test_without_preload_the_default_is_the_first_built_in(client):
    assert client.get("/api/models").json()["default"] == "minilm"
    assert client.get("/readyz").json() == {"state": "minilm absent"}


def test_a_load_is_followed_to_its_end(models):
    with serving(models) as client:
        answer = client.post("/api/models/load", json={"model": BERT})
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        states = [event["state"] for event in events(answer)]
        order = ["absent", "queued", "fetching", "loading", "ready"]
        assert states == sorted(set(states), key=order.index)
        assert states[-1] == "ready"
        assert {event["id"] for event in events(answer)} == {BERT}
        again = load(client, BERT)
        assert [event["state"] for event in again] == ["ready"]
        (listed,) = (model for model in client.get("/api/models").json()["models"] if model["id"] == BERT)
        assert again == [listed]


def test_a_load_that_fails_ends_with_the_reason(models):
    with serving(models) as client:
        *_, end = load(client, BROKEN)
        assert (end["state"], end["layers"]) == ("failed", None)
        assert "tanhshrink" in end["message"]


def test_a_model_that_failed_can_be_tried_again(models):
    config = models / "broken" / "config.json"
    content = config.read_text()
    with serving(models) as client:
        assert load(client, BROKEN)[-1]["state"] == "failed"
        config.write_text(content.replace("tanhshrink", "relu"))
        try:
            assert load(client, BROKEN)[-1]["state"] == "ready"
            assert trace(client, model=BROKEN, ids=[1])["id"]
        finally:
            config.write_text(content)


def test_the_list_of_models(client):
    answer = client.get("/api/models").json()
    assert set(answer) == {"default", "device", "dtype", "hub", "models"}
    assert answer["hub"] is False
    listed = {model["id"]: model for model in answer["models"]}
    assert {"minilm", "smollm2", BERT, LLAMA} <= set(listed)
    ready = listed[LLAMA]
    assert {
        name: ready[name] for name in ("title", "family", "stacks", "layers", "heads", "width", "state")
    } == {
        "title": "llama",
        "family": "llama",
        "stacks": ["decoder"],
        "layers": 3,
        "heads": 6,
        "width": 60,
        "state": "ready",
    }
    assert (ready["max_tokens"], ready["readout"], ready["own_mask"]) == (48, "logits", "causal")
    assert ready["supports"] == list(KINDS)
    assert ready["builtin"] is False
    absent = listed["minilm"]
    assert (absent["state"], absent["layers"], absent["builtin"]) == ("absent", None, True)
    assert absent["example"]
    assert absent["size"] > 0


def test_closing_ends_the_downloads(models, monkeypatch):
    closed = []
    real = app.main.ModelPool.close
    monkeypatch.setattr(app.main.ModelPool, "close", lambda pool: (closed.append(pool), real(pool)))
    with serving(models) as client:
        pool = app_of(client).state.services.pool
    assert closed == [pool]
