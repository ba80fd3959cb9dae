import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platformdirs import user_cache_path

from app import memory
from app.settings import Settings, is_loopback, load_settings, unknown_variables
from model.errors import InputError


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("ATLAS_"):
            monkeypatch.delenv(name)


def test_defaults():
    settings = load_settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.hub is True
    assert settings.preload == ("minilm", "smollm2", "whisper-tiny.en", "rxnmapper")
    assert settings.cache_dir == user_cache_path("attention-atlas")
    assert settings.trace_bytes == memory.machine_bytes() // 8


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("atlas.example.org", False),
        ("", False),
    ],
)
def test_loopback(host, expected):
    assert is_loopback(host) is expected
    assert Settings(host=host).hub is expected


def test_the_hub_can_be_allowed_beyond_loopback_and_forbidden_on_it(monkeypatch):
    monkeypatch.setenv("ATLAS_HUB", "on")
    assert load_settings(host="0.0.0.0").hub is True
    monkeypatch.setenv("ATLAS_HUB", "off")
    assert load_settings().hub is False


def test_the_command_line_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("ATLAS_PORT", "9000")
    assert load_settings(port=None).port == 9000
    assert load_settings(port=9100).port == 9100


def test_lists_are_written_with_commas_and_folders_with_the_path_separator(monkeypatch, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("ATLAS_PRELOAD", "minilm, org/name")
    monkeypatch.setenv("ATLAS_MODEL_ROOT", os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two")]))
    settings = load_settings()
    assert settings.preload == ("minilm", "org/name")
    assert settings.model_root == (tmp_path / "one", tmp_path / "two")
    monkeypatch.setenv("ATLAS_PRELOAD", "")
    assert load_settings().preload == ()


def test_host_names_grow_with_the_reach():
    assert Settings().allowed_hosts == ("localhost", "127.0.0.1", "[::1]")
    assert set(Settings(host="10.0.0.7").allowed_hosts) == {
        "localhost",
        "127.0.0.1",
        "[::1]",
        "10.0.0.7",
        socket.gethostname(),
    }


@pytest.mark.parametrize(
    ("given_values", "words"),
    [
        ({"port": 70000}, r"The setting port \(ATLAS_PORT\) does not take 70000: .*65535"),
        ({"device": "tpu"}, r"The setting device \(ATLAS_DEVICE\) does not take 'tpu'"),
        ({"dtype": "int8"}, r"dtype .* does not take 'int8'.*float32"),
        ({"threads": 0}, "threads"),
        ({"hub": "perhaps"}, r"ATLAS_HUB.*'perhaps'"),
        ({"model_root": ("/no/such/folder",)}, "/no/such/folder is not a folder"),
        ({"model_root": ("",)}, 'a path is empty; write "." where the current folder is meant'),
    ],
)
def test_a_wrong_value_is_one_sentence(given_values, words):
    with pytest.raises(InputError, match=words) as caught:
        load_settings(**given_values)
    assert "\n" not in caught.value.detail


def test_a_root_that_is_a_model_itself_is_explained(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="is a model itself; give the folder that holds it"):
        load_settings(model_root=(tmp_path,))


def test_two_roots_of_one_name_are_refused(tmp_path):
    roots = (tmp_path / "a" / "models", tmp_path / "b" / "models")
    for root in roots:
        root.mkdir(parents=True)
    with pytest.raises(InputError, match="two folders are called models"):
        load_settings(model_root=roots)


def test_misspelt_variables_are_found(monkeypatch):
    monkeypatch.setenv("ATLAS_PORTS", "1")
    monkeypatch.setenv("ATLAS_PORT", "1")
    assert unknown_variables() == ["ATLAS_PORTS"]


@given(limit=st.integers(1, 2**50))
def test_a_containers_limit_bounds_the_memory(tmp_path_factory, limit):
    path = tmp_path_factory.mktemp("cgroup") / "memory.max"
    path.write_text(f"{limit}\n")
    unlimited = memory.machine_bytes(())
    assert memory.machine_bytes((path,)) == min(limit, unlimited)
    path.write_text("max\n")
    assert memory.machine_bytes((path,)) == unlimited


def test_budgets_are_unknown_where_the_system_does_not_say(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert memory.machine_bytes(()) is None
    monkeypatch.setattr(memory, "machine_bytes", lambda: None)
    assert memory.model_budget("cpu") is None
    assert memory.trace_budget() is None
    assert Settings().trace_bytes is None
