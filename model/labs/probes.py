"""The probe set: what heads are tried on, and what a label asks of them. It is written in probes.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RELATIONS = ("pronoun", "agreement", "adjective", "list")
PROBES = Path(__file__).with_name("probes.toml")


@dataclass(frozen=True)
class LabelRule:
    """A label: how its score is defined, what stands beside it, and from which values on it is given."""

    name: str
    definition: str
    beside: str
    at_least: float
    beside_at_least: float


@dataclass(frozen=True)
class Sentence:
    """A text, and by relation its links: the word that looks, and the words that are right to look at."""

    text: str
    links: Mapping[str, Sequence[tuple[str, frozenset[str]]]]


@dataclass(frozen=True)
class ProbeSet:
    """All of it. `version` is told with every score."""

    version: str
    seed: int
    blocks: tuple[int, ...]
    labels: Mapping[str, LabelRule]
    sentences: tuple[Sentence, ...]
    active_weight: float
    pronouns: frozenset[str]


def read_probes(path: Path = PROBES) -> ProbeSet:
    """The probe set in a file. Raises KeyError or ValueError for a file that is not one."""
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    labels = {name: LabelRule(name, **rule) for name, rule in raw["labels"].items()}
    sentences = tuple(Sentence(one["text"], _links(one)) for one in raw["sentences"])
    repeated, activity = raw["repeated"], raw["activity"]
    return ProbeSet(
        raw["version"],
        repeated["seed"],
        tuple(repeated["blocks"]),
        labels,
        sentences,
        activity["weight"],
        frozenset(activity["pronouns"].split()),
    )


def _links(raw: Mapping[str, Any]) -> dict[str, list[tuple[str, frozenset[str]]]]:
    links = {}
    for relation in set(raw) - {"text"}:
        if relation not in RELATIONS:
            raise ValueError(f"no relation is called {relation}")
        links[relation] = (
            _items(raw[relation]) if relation == "list" else [_pair(link) for link in raw[relation]]
        )
    return links


def _pair(link: str) -> tuple[str, frozenset[str]]:
    looking, target = link.split(" > ")
    return looking, frozenset([target])


def _items(lists: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    return [(item, frozenset(items) - {item}) for items in map(str.split, lists) for item in items]
