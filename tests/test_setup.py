"""The set-up behind the Makefile says in one sentence why it cannot go on, and repairs what is half-made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _set_up(venv: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    command = [sys.executable, str(ROOT / "scripts" / "setup"), "run", "--venv", str(venv)]
    return subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """Variables under which pip finds no index, on any machine."""
    closed = "http://127.0.0.1:9/simple"
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": closed,
        "PIP_RETRIES": "1",
        "PIP_CACHE_DIR": str(tmp_path / "cache"),
    }


def test_a_broken_environment_is_made_anew_and_a_missing_index_said(tmp_path, offline):
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(tmp_path / "nowhere")
    done = _set_up(venv, **offline)
    assert done.returncode == 1
    assert "venv is broken: making it anew" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "the package index could not be reached" in done.stderr
    assert (venv / "atlas-setup.json").read_text(encoding="utf-8") == "{}", "not marked as unfinished"


def test_a_file_in_the_way_is_left_alone(tmp_path):
    venv = tmp_path / "venv"
    venv.write_text("mine", encoding="utf-8")
    done = _set_up(venv)
    assert (done.returncode, done.stderr) == (
        1,
        f"setup: {venv} is not a folder: move it away and run make again\n",
    )
    assert venv.read_text(encoding="utf-8") == "mine"


def test_a_python_without_venv_names_what_to_install(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(
        "import importlib.util as util\nreal = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'ensurepip' else real(name, *rest)\n",
        encoding="utf-8",
    )
    done = _set_up(tmp_path / "venv", PYTHONPATH=str(blocked))
    assert done.returncode == 1
    assert "cannot make virtual environments: install its venv module" in done.stderr
    assert not (tmp_path / "venv").exists()
