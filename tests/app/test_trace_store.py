from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.trace_store import Entry, TraceStore
from model.errors import TraceGone
from tests.serving import BERT, CAUSAL, load, problem, serving, trace
from tests.tiny import ids


def entry(name, size):
    return Entry(name, "model", None, SimpleNamespace(nbytes=size), (), (), 0.0)


def test_the_least_recently_used_goes_first():
    store = TraceStore(100)
    for name in "abc":
        store.add(entry(name, 30))
    store.get("a")
    store.add(entry("d", 40))
    assert [name for name in "abcd" if store.find(name)] == ["a", "c", "d"]
    assert store.nbytes == 100
    with pytest.raises(TraceGone, match="run the text again"):
        store.get("b")


def test_adding_again_counts_once():
    store = TraceStore(100)
    for _ in range(3):
        store.add(entry("a", 60))
    assert store.nbytes == 60


def test_a_trace_of_the_whole_budget_stays():
    store = TraceStore(100)
    store.add(entry("a", 10))
    store.add(entry("b", 100))
    assert store.find("a") is None
    assert store.find("b")
    assert store.nbytes == 100


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 100))), st.integers(100, 300))
def test_bytes_are_counted_and_bounded(steps, budget):
    store = TraceStore(budget)
    held = {}
    for name, size in steps:
        store.add(entry(name, size))
        held[name] = size
        held = {name: size for name, size in held.items() if store._entries.get(name)}
        assert store.nbytes == sum(held.values()) <= budget
        assert name in held


def test_an_evicted_trace_comes_back_the_same(models):
    size = len(ids(30)) * (3 * 3 * 60 + 60) * 4
    with serving(models, trace_bytes=2 * size) as client:
        load(client, BERT)
        paths = [
            "overview/encoder.self?size=10",
            "attention/encoder.self.2/4",
            "attention/encoder.self.1/0?stage=masked&format=json",
            "heads",
            "pair/encoder.self.0/1?query=20&key=3",
            "links/encoder.self?query=7&key=9",
        ]
        first = trace(client, ids=ids(30), plan=CAUSAL)
        before = [client.get(f"/api/traces/{first['id']}/{path}").content for path in paths]
        trace(client, ids=ids(30, seed=1))
        trace(client, ids=ids(30, seed=2))
        for path in paths:
            body = problem(client.get(f"/api/traces/{first['id']}/{path}"), 404, "trace-gone")
            assert body["id"] == first["id"]
        again = trace(client, ids=ids(30), plan=CAUSAL)
        assert again["id"] == first["id"]
        assert [client.get(f"/api/traces/{first['id']}/{path}").content for path in paths] == before


@pytest.mark.parametrize("trace_id", ["0" * 32, "nonsense", "%00", "💩", "a" * 5000])
def test_a_trace_that_never_was(client, trace_id):
    problem(client.get(f"/api/traces/{trace_id}/heads"), 404, "trace-gone")
