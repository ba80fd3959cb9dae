"""What many users at once see: the same numbers as one alone, and nobody waits for another's download."""

import threading
from concurrent.futures import ThreadPoolExecutor

from app.services import engine as engine_module
from app.services import runs as runs_module
from app.services import start
from tests.serving import BERT, CAUSAL, LLAMA, MASKED, TEXT, load, problem, serving, trace
from tests.tiny import ids

PATIENCE = 30


def picture(client, request):
    opened = trace(client, **request)
    stack = opened["sites"][0]["stack"]
    paths = [f"attention/{stack}.self.{layer}/{head}" for layer in range(3) for head in (0, 4)]
    paths += ["heads", f"overview/{stack}.self?size=9", f"pair/{stack}.self.2/3?query=9&key=2"]
    return opened["id"], [client.get(f"/api/traces/{opened['id']}/{path}").content for path in paths]


def test_eight_at_once_get_bit_for_bit_what_one_alone_gets(models):
    requests = [
        {"model": model, "ids": ids(24, seed), "plan": plan}
        for model in (BERT, LLAMA)
        for plan in (CAUSAL, [{"kind": "set_scale", "rule": "none"}])
        for seed in (0, 1)
    ]
    with serving(models) as client:
        for model in (BERT, LLAMA):
            load(client, model)
        alone = [picture(client, request) for request in requests]
    with serving(models) as client, ThreadPoolExecutor(8) as pool:
        for model in (BERT, LLAMA):
            load(client, model)
        gate = threading.Barrier(8)

        def ask(request):
            gate.wait(PATIENCE)
            return picture(client, request)

        assert list(pool.map(ask, requests)) == alone
        assert len({trace_id for trace_id, _ in alone}) == 8


def test_the_same_text_asked_for_by_many_is_run_once(models, monkeypatch):
    runs, real = [], runs_module.run

    def noted(*args):
        runs.append(args)
        return real(*args)

    monkeypatch.setattr(runs_module, "run", noted)
    with serving(models) as client, ThreadPoolExecutor(8) as pool:
        load(client, BERT)
        found = set(pool.map(lambda _: trace(client, text=TEXT)["id"], range(8)))
    assert len(found) == 1
    assert len(runs) == 1


def test_a_full_line_is_said_and_what_is_stored_is_still_shown(models, monkeypatch):
    entered, go = threading.Event(), threading.Event()
    real = runs_module.run
    monkeypatch.setattr(engine_module, "RUNS_WAITING", 0)

    def slow(*args):
        entered.set()
        assert go.wait(PATIENCE)
        return real(*args)

    with serving(models) as client, ThreadPoolExecutor(1) as pool:
        load(client, BERT)
        stored = trace(client, text=TEXT)
        monkeypatch.setattr(runs_module, "run", slow)
        running = pool.submit(trace, client, text="did it")
        try:
            assert entered.wait(PATIENCE)
            answer = client.post("/api/traces", json={"model": BERT, "text": "the animal"})
            assert "try again in a few seconds" in problem(answer, 503, "busy")["detail"]
            assert int(answer.headers["retry-after"]) > 0
            assert trace(client, text=TEXT) == stored
            assert client.get(f"/api/traces/{stored['id']}/heads").status_code == 200
            assert client.get("/healthz").status_code == 200
        finally:
            go.set()
        assert running.result(PATIENCE)["id"]
        assert trace(client, text="the animal")["id"]


def test_a_slow_load_holds_nobody_up(models, monkeypatch):
    entered, go = threading.Event(), threading.Event()
    real = start.load

    def slow(path, settings):
        if path.name == "llama":
            entered.set()
            assert go.wait(PATIENCE)
        return real(path, settings)

    monkeypatch.setattr(start, "load", slow)
    with serving(models, preload=(LLAMA,)) as client, ThreadPoolExecutor(1) as pool:
        try:
            assert entered.wait(PATIENCE)
            # Loading is one lane: the encoder's turn comes once the decoder is there, but the rest answers.
            waiting = pool.submit(load, client, LLAMA)
            assert client.get("/healthz").json() == {"status": "ok"}
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()) == (503, {"state": f"loading {LLAMA}"})
            listed = {model["id"]: model["state"] for model in client.get("/api/models").json()["models"]}
            assert listed[LLAMA] == "loading"
            answer = client.post("/api/traces", json={"model": LLAMA, "text": TEXT})
            body = problem(answer, 503, "model-not-ready")
            assert (body["model"], body["state"]) == (LLAMA, "loading")
            assert int(answer.headers["retry-after"]) > 0
        finally:
            go.set()
        assert waiting.result(PATIENCE)[-1]["state"] == "ready"
        assert client.get("/readyz").json() == {"state": "ready"}


def test_a_model_that_is_there_answers_while_another_loads(models, monkeypatch):
    entered, go = threading.Event(), threading.Event()
    real = start.load

    def slow(path, settings):
        if path.name == "masked":
            entered.set()
            assert go.wait(PATIENCE)
        return real(path, settings)

    monkeypatch.setattr(start, "load", slow)
    with serving(models) as client, ThreadPoolExecutor(1) as pool:
        load(client, BERT)
        waiting = pool.submit(load, client, MASKED)
        try:
            assert entered.wait(PATIENCE)
            assert trace(client, text=TEXT)["sizes"]["tokens"] == 8
        finally:
            go.set()
        assert waiting.result(PATIENCE)[-1]["state"] == "ready"


def test_a_model_nobody_asked_for_is_not_loaded_by_a_trace(models):
    with serving(models) as client:
        answer = client.post("/api/traces", json={"model": BERT, "text": TEXT})
        assert problem(answer, 503, "model-not-ready")["state"] == "absent"
        assert f"{BERT} is not loaded; ask for it first: POST /api/models/load" in answer.json()["detail"]
        assert client.get("/api/models").json()["models"][-1]["state"] == "absent"
