"""The engine: one facade that every door (HTTP, command line) asks. Its state is its pool and its store."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal

import torch

from app.schemas import CompareRequest, Tile, TraceRequest
from app.services import readouts, views
from app.services.comparison import compare
from app.services.labs import Labs
from app.services.limits import Slots
from app.services.opened import Opened
from app.services.pair import pair
from app.services.payload import npy, numbers
from app.services.runs import ModelName, Prepared, make_entry, prepare
from app.services.trace_store import Entry, TraceStore
from model.config import layer_of
from model.errors import UnknownSite
from model.loading import LoadedModel
from model.trace import SiteTrace

RUNS_WAITING = 16


@dataclass(frozen=True)
class Picture:
    """A tensor to be drawn, and headers that say what it shows."""

    tensor: torch.Tensor
    headers: dict[str, str]

    @property
    def data(self) -> bytes:
        """The tensor as .npy."""
        return npy(self.tensor)

    def as_json(self) -> dict[str, object]:
        """The tensor as nested lists, with null for what JSON has no word for, and the headers' facts."""
        facts = {name.removeprefix("X-Atlas-").lower(): value for name, value in self.headers.items()}
        return {**facts, "values": [numbers(row) for row in self.tensor]}


class Engine:
    """Opens traces and looks into them. Safe for threads; runs take turns, looking waits for no run."""

    def __init__(
        self, find: Callable[[str], tuple[LoadedModel, ModelName]], store: TraceStore, device: str
    ) -> None:
        """`find` gives a loaded model and its name for an id, or raises NotReady or UnknownModel at once."""
        self.device = device
        self._find = find
        self._store = store
        self._slots = Slots(running=1, waiting=RUNS_WAITING)
        self.labs = Labs(lambda model_id: find(model_id)[0], device)

    def open_trace(self, request: TraceRequest) -> Opened:
        """The trace of a request, stored or run now. Raises NotReady, Busy and what `prepare` raises."""
        loaded, name = self._find(request.model)
        with self._slots.take() if loaded.config.encoder else nullcontext():
            # Where a decoder writes its own target, reading a request is a run too.
            prepared = prepare(request, loaded, name, self._store.budget)
        trace_id = prepared.trace_id()
        entry = self._store.find(trace_id)
        if entry is None:
            with self._slots.take():
                entry = self._store.find(trace_id) or self._run(prepared, trace_id)
        return Opened(prepared, entry)

    def entry(self, trace_id: str) -> Entry:
        """A stored trace. Raises TraceGone."""
        return self._store.get(trace_id)

    def compare(self, request: CompareRequest) -> dict[str, object]:
        """Runs both requests with their streams recorded and holds them against each other."""
        a, b = (
            self.open_trace(side.model_copy(update={"record": ["resid"]})) for side in (request.a, request.b)
        )
        return compare(a, b, request.by)

    def overview(self, trace_id: str, group: str, size: int, layers: range | None) -> Picture:
        """Thumbnails of all heads of `group` ("encoder.self"): uint8 [L, H, T', S']."""
        found = _layers(self.entry(trace_id), group, layers)
        sites = list(found.values())
        thumbnails = torch.stack([views.overview(site, size) for site in sites])  # [L, H, T', S']
        pooled = size < max(sites[0].queries, sites[0].keys)
        headers = {
            "X-Atlas-Layers": _ranges(list(found)),
            "X-Atlas-Pool": "max" if pooled else "none",
        }
        return Picture(thumbnails, headers)

    def attention(self, trace_id: str, site_name: str, head: int, tile: Tile) -> Picture:
        """One head's rows × keys at a stage, pooled to at most `tile.max` a side."""
        _, site = self.site(trace_id, site_name, head)
        rows, keys = tile.queries(site.queries), tile.keys(site.keys)
        _check_index("query", rows.stop - 1, site.queries)
        _check_index("key", keys.stop - 1, site.keys)
        pooled = tile.max < max(len(rows), len(keys))
        headers = {
            "X-Atlas-Stage": tile.stage,
            "X-Atlas-Rows": f"{rows.start}:{rows.stop}",
            "X-Atlas-Cols": f"{keys.start}:{keys.stop}",
            "X-Atlas-Pool": tile.pool if pooled else "none",
        }
        return Picture(views.tile(site, head, tile.stage, rows, keys, tile.max, tile.pool), headers)

    def figures(self, trace_id: str, layers: range | None) -> dict[str, object]:
        """Every head's figures, site by site, with their definitions."""
        entry = self.entry(trace_id)
        sites = [site for group in _groups(entry) for site in _layers(entry, group, layers).values()]
        found = [{"site": site.site, "heads": views.figures(site)} for site in sites]
        return {"definitions": views.DEFINITIONS, "sites": found}

    def links(self, trace_id: str, group: str, query: int, key: int) -> dict[str, object]:
        """The weight of query → key in every head, [L][H], and which layers these are."""
        found = _layers(self.entry(trace_id), group, None)
        first = next(iter(found.values()))
        _check_index("query", query, first.queries)
        _check_index("key", key, first.keys)
        weights = [views.links(site, query, key) for site in found.values()]
        return {"query": query, "key": key, "layers": list(found), "weights": weights}

    def pair(self, trace_id: str, site_name: str, head: int, query: int, key: int) -> dict[str, object]:
        """The arithmetic of one query–key pair."""
        entry, site = self.site(trace_id, site_name, head)
        _check_index("query", query, site.queries)
        _check_index("key", key, site.keys)
        return pair(entry, site, head, query, key)

    def site(self, trace_id: str, name: str, head: int) -> tuple[Entry, SiteTrace]:
        """A stored trace's site. Raises TraceGone, or UnknownSite where it has no such site or head."""
        entry = self.entry(trace_id)
        if name not in entry.trace.sites:
            known = list(entry.trace.sites)
            there = f"it has {known[0]} to {known[-1]}" if known else "its plan left all attention out"
            raise UnknownSite(f"This trace has no site “{name}”: {there}.", sites=known)
        site = entry.trace.sites[name]
        _check_index("head", head, site.heads)
        return entry, site

    def _run(self, prepared: Prepared, trace_id: str) -> Entry:
        positions = readouts.logit_positions(prepared.loaded, prepared.encoded.ids)
        entry = make_entry(prepared, trace_id, positions)
        self._store.add(entry)
        return entry


def _groups(entry: Entry) -> list[str]:
    """Stack and kind of every attention of a trace."""
    return list(dict.fromkeys(site.rpartition(".")[0] for site in entry.trace.sites))


def _layers(entry: Entry, group: str, layers: range | None) -> dict[int, SiteTrace]:
    """The sites of a group by the model's layers. Raises UnknownSite for one that has none."""
    sites = {
        layer_of(name): site for name, site in entry.trace.sites.items() if name.rpartition(".")[0] == group
    }
    if not sites:
        there = ", ".join(_groups(entry)) or "none, since its plan left all out"
        raise UnknownSite(f"This trace has no attention called “{group}”: it has {there}.")
    if layers is None:
        return sites
    count = entry.loaded.config.stack_of(next(iter(sites.values())).site).layers
    if not layers or layers.stop > count:
        raise UnknownSite(
            f"Layers {layers.start}:{layers.stop} are not all there: this model has layers 0:{count}."
        )
    left_out = [layer for layer in layers if layer not in sites]
    if left_out:
        raise UnknownSite(
            f"Layer {left_out[0]} has no {group} attention in this trace, because its plan left that out: "
            f"ask for the layers {_ranges(list(sites))}."
        )
    return {layer: sites[layer] for layer in layers}


def _ranges(layers: list[int]) -> str:
    """Rising numbers as half-open ranges: "0:2,3:6"."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    stops = [layer + 1 for layer in layers if layer + 1 not in layers]
    return ",".join(f"{start}:{stop}" for start, stop in zip(starts, stops, strict=True))


def _check_index(name: Literal["head", "query", "key"], index: int, count: int) -> None:
    if index not in range(count):
        raise UnknownSite(f"There is no {name} {index} in this trace: they go from 0 to {count - 1}.")
